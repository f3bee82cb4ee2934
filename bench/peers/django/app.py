"""The listing by Django REST Framework, and by Graphene, on the tables of the gateway: a page counts all and skips by OFFSET."""
import os
import sys
from datetime import datetime, timedelta, timezone

import django
from django.conf import settings

sys.modules["app"] = sys.modules[__name__]
settings.configure(
    SECRET_KEY="of the benchmark",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF="app",
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ["PGDATABASE"],
            "HOST": os.environ["PGHOST"],
            "PORT": os.environ["PGPORT"],
            "USER": os.environ["PGUSER"],
            "PASSWORD": os.environ["PGPASSWORD"],
            # A connection stays open, as in the pools of the others.
            "CONN_MAX_AGE": None,
        }
    },
    # Errors come to the log of gunicorn.
    DEBUG_PROPAGATE_EXCEPTIONS=True,
    USE_TZ=True,
    INSTALLED_APPS=["rest_framework", "app"],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    REST_FRAMEWORK={
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "DEFAULT_PERMISSION_CLASSES": [],
        "UNAUTHENTICATED_USER": None,
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    },
)
django.setup()

import json  # noqa: E402

import graphene  # noqa: E402
from django.core.paginator import Paginator  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import models  # noqa: E402
from django.http import JsonResponse  # noqa: E402
from django.urls import path  # noqa: E402
from rest_framework import generics, pagination, serializers  # noqa: E402

MEDIA, VIDEO = "https://media.example.com", "https://video.example.com"
ZERO = datetime(1970, 1, 1, tzinfo=timezone.utc)


def moment(micros):
    return (ZERO + timedelta(microseconds=micros)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class User(models.Model):
    avatar_key = models.TextField()
    username = models.TextField()
    first_name = models.TextField()
    last_name = models.TextField()

    class Meta:
        app_label, db_table, managed = "app", "users", False


class Outfit(models.Model):
    title = models.TextField()
    description = models.TextField()
    image_key = models.TextField()
    image_original_key = models.TextField()
    complete = models.BooleanField()
    user = models.ForeignKey(User, models.DO_NOTHING)
    quality = models.IntegerField()
    private = models.BooleanField()
    background_color = models.TextField()
    video_key = models.TextField(null=True)
    play_video = models.BooleanField()
    created = models.BigIntegerField()
    modified = models.BigIntegerField()
    creation_device = models.TextField()
    modification_device = models.TextField()

    class Meta:
        app_label, db_table, managed = "app", "outfits", False


class Likes(models.Model):
    outfit = models.OneToOneField(Outfit, models.DO_NOTHING, db_column="id", primary_key=True)
    likes = models.IntegerField()

    class Meta:
        app_label, db_table, managed = "app", "outfit_like_counts", False


OUTFITS = Outfit.objects.select_related("user", "likes").order_by("-created", "-id")


class UserSerializer(serializers.ModelSerializer):
    class Meta:
        model = User
        fields = ["id", "avatar_key", "username", "first_name", "last_name"]


class OutfitSerializer(serializers.ModelSerializer):
    image_key = serializers.SerializerMethodField()
    image_original_url = serializers.SerializerMethodField()
    likes = serializers.IntegerField(source="likes.likes")
    user = UserSerializer()
    background_image = serializers.ReadOnlyField(default=None)
    video = serializers.SerializerMethodField()
    created = serializers.SerializerMethodField()
    modified = serializers.SerializerMethodField()

    class Meta:
        model = Outfit
        fields = [
            *["id", "title", "description", "image_key", "image_original_url", "complete"],
            *["likes", "user", "quality", "private", "background_image", "background_color"],
            *["video", "play_video", "created", "modified", "creation_device"],
            "modification_device",
        ]

    def get_image_key(self, outfit):
        return f"{MEDIA}/{outfit.image_key}"

    def get_image_original_url(self, outfit):
        return f"{MEDIA}/{outfit.image_original_key}"

    def get_video(self, outfit):
        return outfit.video_key and f"{VIDEO}/{outfit.video_key}"

    def get_created(self, outfit):
        return moment(outfit.created)

    def get_modified(self, outfit):
        return moment(outfit.modified)


class Pages(pagination.PageNumberPagination):
    page_size = 20


class OutfitList(generics.ListAPIView):
    queryset = OUTFITS
    serializer_class = OutfitSerializer
    pagination_class = Pages


class UserType(graphene.ObjectType):
    class Meta:
        name = "User"

    database_id = graphene.Int()
    avatar_key = graphene.String()
    username = graphene.String()
    first_name = graphene.String()
    last_name = graphene.String()

    def resolve_database_id(user, info):
        return user.id


class OutfitType(graphene.ObjectType):
    class Meta:
        name = "Outfit"

    database_id = graphene.Int()
    title = graphene.String()
    description = graphene.String()
    image_key = graphene.String()
    image_original_url = graphene.String()
    complete = graphene.Boolean()
    likes = graphene.Int()
    user = graphene.Field(UserType)
    quality = graphene.Int()
    private = graphene.Boolean()
    background_image = graphene.String()
    background_color = graphene.String()
    video = graphene.String()
    play_video = graphene.Boolean()
    created = graphene.String()
    modified = graphene.String()
    creation_device = graphene.String()
    modification_device = graphene.String()

    def resolve_database_id(outfit, info):
        return outfit.id

    def resolve_image_key(outfit, info):
        return f"{MEDIA}/{outfit.image_key}"

    def resolve_image_original_url(outfit, info):
        return f"{MEDIA}/{outfit.image_original_key}"

    def resolve_likes(outfit, info):
        return outfit.likes.likes

    def resolve_background_image(outfit, info):
        return None

    def resolve_video(outfit, info):
        return outfit.video_key and f"{VIDEO}/{outfit.video_key}"

    def resolve_created(outfit, info):
        return moment(outfit.created)

    def resolve_modified(outfit, info):
        return moment(outfit.modified)


class OutfitPage(graphene.ObjectType):
    count = graphene.Int()
    page_count = graphene.Int()
    page = graphene.Int()
    next_page = graphene.Int()
    previous_page = graphene.Int()
    results = graphene.List(OutfitType)


class Query(graphene.ObjectType):
    outfits = graphene.Field(
        OutfitPage,
        ordering=graphene.Argument(graphene.Enum("OutfitOrdering", [("CREATED_DESC", 1)])),
        page=graphene.Int(),
    )

    def resolve_outfits(root, info, page=1, ordering=None):
        paginator = Paginator(OUTFITS, 20)
        found = paginator.page(page)
        return OutfitPage(
            count=paginator.count,
            page_count=paginator.num_pages,
            page=page,
            next_page=page + 1 if found.has_next() else None,
            previous_page=page - 1 if found.has_previous() else None,
            results=list(found),
        )


SCHEMA = graphene.Schema(query=Query)


def graphql(request):
    body = json.loads(request.body)
    result = SCHEMA.execute(body["query"], variables=body["variables"])
    errors = {"errors": [str(error) for error in result.errors]} if result.errors else {}
    return JsonResponse({"data": result.data, **errors})


urlpatterns = [path("api/outfits/", OutfitList.as_view()), path("graphql", graphql)]
application = get_wsgi_application()
