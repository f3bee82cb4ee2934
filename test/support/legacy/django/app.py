"""An old service by Django REST Framework: tokens, sessions, and JWTs in the form of simplejwt.

`python3 app.py setup` makes its users and prints their credentials, `python3 app.py revoke` ends those of "ann".
"""
import json
import os
import sys
import time

import django
import jwt
from django.conf import settings

SECRET = os.environ["SECRET"]
# Also when it is run as a script: settings name it.
sys.modules["app"] = sys.modules[__name__]

settings.configure(
    SECRET_KEY=SECRET,
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF="app",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATABASE"]}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "rest_framework",
        "rest_framework.authtoken",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    REST_FRAMEWORK={
        "DEFAULT_AUTHENTICATION_CLASSES": [
            "rest_framework.authentication.SessionAuthentication",
            "rest_framework.authentication.TokenAuthentication",
            "app.JwtAuthentication",
        ],
        "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticatedOrReadOnly"],
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
        "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.AnonRateThrottle"],
        "DEFAULT_THROTTLE_RATES": {"anon": "1000/min"},
    },
)
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from rest_framework import authentication, exceptions  # noqa: E402


class JwtAuthentication(authentication.BaseAuthentication):
    def authenticate(self, request):
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer":
            return None
        try:
            claims = jwt.decode(token, SECRET, algorithms=["HS256"])
        except jwt.PyJWTError:
            raise exceptions.AuthenticationFailed("Given token not valid for any token type")
        if claims.get("token_type") != "access":
            raise exceptions.AuthenticationFailed("Given token not valid for any token type")
        user = User.objects.filter(pk=claims["user_id"], is_active=True).first()
        if user is None:
            raise exceptions.AuthenticationFailed("User is inactive")
        return user, None


# They read the settings, which name the class above.
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.urls import path  # noqa: E402
from rest_framework import generics, serializers  # noqa: E402
from rest_framework.permissions import IsAuthenticated  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402


class UserSerializer(serializers.ModelSerializer):
    class Meta:
        model = User
        fields = ["id", "username"]


class Outfits(generics.ListCreateAPIView):
    queryset = User.objects.all()
    serializer_class = UserSerializer


class WhoAmI(APIView):
    permission_classes = [IsAuthenticated]
    throttle_classes = []  # all questions come from the gateway

    def get(self, request):
        return Response({"id": request.user.pk})


urlpatterns = [
    path("api/outfits/", Outfits.as_view()),
    path("whoami/", WhoAmI.as_view()),
]
application = get_wsgi_application()


def sign(**claims):
    now = int(time.time())
    given = {"token_type": "access", "exp": now + 300, "iat": now, "jti": "0f", **claims}
    return jwt.encode(given, SECRET, algorithm="HS256")


def setup():
    from django.core.management import call_command
    from django.test import Client
    from rest_framework.authtoken.models import Token

    call_command("migrate", verbosity=0)
    credentials = {}
    for name in ["ann", "bob"]:
        user = User.objects.create_user(name)
        client = Client()
        client.force_login(user)
        credentials[name] = {
            "id": user.pk,
            "token": Token.objects.create(user=user).key,
            "session": client.cookies["sessionid"].value,
            "access": sign(user_id=user.pk),
            "refresh": sign(user_id=user.pk, token_type="refresh"),
            "expired": sign(user_id=user.pk, exp=int(time.time()) - 60),
        }
    print(json.dumps(credentials))


def revoke():
    from django.contrib.sessions.models import Session

    ann = User.objects.get(username="ann")
    ann.auth_token.delete()
    for session in Session.objects.all():
        if session.get_decoded().get("_auth_user_id") == str(ann.pk):
            session.delete()
    ann.is_active = False
    ann.save()


if __name__ == "__main__":
    {"setup": setup, "revoke": revoke}[sys.argv[1]]()
