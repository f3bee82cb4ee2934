"""An old service by Django REST Framework: the listing, tokens, sessions, and JWTs in the form of simplejwt.

`python3 app.py setup` makes outfits and users and prints their credentials.
"""
import datetime
import json
import os
import sys
import time
import urllib.parse

import django
import jwt
from django.conf import settings

SECRET = os.environ["SECRET"]
# Also when it is run as a script: settings name it.
sys.modules["app"] = sys.modules[__name__]

# A file, or the address of a database of PostgreSQL.
database = urllib.parse.urlsplit(os.environ["DATABASE"])
if database.scheme == "postgresql":
    names = {"NAME": database.path[1:], "HOST": database.hostname, "PORT": database.port}
    credentials = {"USER": database.username, "PASSWORD": database.password}
    database = {"ENGINE": "django.db.backends.postgresql", **names, **credentials}
else:
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": database.path}

settings.configure(
    SECRET_KEY=SECRET,
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF="app",
    DATABASES={"default": database},
    USE_TZ=True,
    TIME_ZONE="UTC",
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=[
        *(f"django.contrib.{name}" for name in ["auth", "contenttypes", "sessions"]),
        *["rest_framework", "rest_framework.authtoken"],
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
            claims = {}
        if claims.get("token_type") != "access":
            raise exceptions.AuthenticationFailed("Given token not valid for any token type")
        user = User.objects.filter(pk=claims["user_id"], is_active=True).first()
        if user is None:
            raise exceptions.AuthenticationFailed("User is inactive")
        return user, None


# They read the settings, which name the class above.
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection, models  # noqa: E402
from django.urls import path  # noqa: E402
from rest_framework import filters, generics, pagination, serializers  # noqa: E402
from rest_framework.permissions import IsAuthenticated  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402


class Outfit(models.Model):
    title = models.TextField(blank=True)
    description = models.TextField(blank=True)
    image_key = models.URLField()
    image_original_url = models.URLField()
    complete = models.BooleanField(default=True)
    likes = models.IntegerField(default=0)
    user = models.ForeignKey(User, models.CASCADE)
    quality = models.IntegerField(default=3)
    private = models.BooleanField(default=False)
    background_image = models.URLField(null=True)
    background_color = models.CharField(max_length=7, blank=True)
    video = models.URLField(null=True)
    play_video = models.BooleanField(default=False)
    created = models.DateTimeField()
    modified = models.DateTimeField()
    creation_device = models.CharField(max_length=10, default="ios")
    modification_device = models.CharField(max_length=10, blank=True)

    class Meta:
        app_label = "app"


class UserSerializer(serializers.ModelSerializer):
    avatar_key = serializers.ReadOnlyField(default="")

    class Meta:
        model = User
        fields = ["id", "avatar_key", "username", "first_name", "last_name"]


class OutfitSerializer(serializers.ModelSerializer):
    user = UserSerializer(read_only=True)

    class Meta:
        model = Outfit
        fields = [field.name for field in Outfit._meta.fields]


class Pages(pagination.PageNumberPagination):
    page_size = 20


class Outfits(generics.ListCreateAPIView):
    queryset = Outfit.objects.select_related("user").annotate(like_count=models.F("likes"))
    serializer_class = OutfitSerializer
    pagination_class = Pages
    filter_backends = [filters.OrderingFilter]
    ordering_fields = ["like_count", "created", "modified", "id"]
    ordering = ["-created"]

    def perform_create(self, serializer):
        serializer.save(user=self.request.user)


class OneOutfit(generics.RetrieveUpdateDestroyAPIView):
    queryset = Outfits.queryset
    serializer_class = OutfitSerializer


class WhoAmI(APIView):
    permission_classes = [IsAuthenticated]
    throttle_classes = []  # all requests are those of the gateway

    def get(self, request):
        return Response({"id": request.user.pk})


urlpatterns = [
    path("api/outfits/", Outfits.as_view()),
    path("api/outfits/<int:pk>/", OneOutfit.as_view()),
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
    with connection.schema_editor() as editor:
        editor.create_model(Outfit)
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
    begin = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
    for number in range(1, 46):
        image = f"https://media.example.com/outfits/00000000-0000-4000-8000-{number:012}.jpeg"
        created = begin + datetime.timedelta(minutes=number, microseconds=number % 3)
        Outfit.objects.create(
            title="Été à Paris 👗" if number % 2 else 'a "quoted" <title> & more\u2028',
            description="#summer\nwith @ann",
            image_key=image,
            image_original_url=image,
            likes=number * 31 % 17,
            user_id=number % 2 + 1,
            private=number % 4 == 0,
            created=created,
            modified=created,
        )
    print(json.dumps(credentials))


if __name__ == "__main__":
    setup()
