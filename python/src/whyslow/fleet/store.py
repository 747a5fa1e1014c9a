"""The storage of a lake: a folder, or a bucket of an object store; read-only, with read counters.

Uses Arrow's file systems. Credentials and endpoints come from environment variables with the names
of the stores' own tools, so that no secret is on a command line.
"""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from ..errors import LakeError

#: Names per request when listing an object store.
_NAMES_A_REQUEST = 1000
_KEYS = {
    "s3": "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION (and AWS_ENDPOINT_URL "
    "for a store other than Amazon's)",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS to the file with the key",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
# Error messages of stores for a missing object, for refused access, and for any failure of the
# store.
_GONE = re.compile(r"NO_SUCH_KEY|RESOURCE_NOT_FOUND|HTTP status 404|BlobNotFound|NOT_FOUND:")
_REFUSED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|INVALID_CLIENT_TOKEN|INVALID_SIGNATURE|SIGNATURE_DOES_NOT"
    r"|EXPIRED_TOKEN|UNRECOGNIZED_CLIENT|MISSING_AUTH|HTTP status (30\d|40[13])|PERMISSION_DENIED"
    r"|UNAUTHENTICATED|AuthenticationFailed|AuthorizationFailure|[Cc]redentials"
)
_OF_STORE = re.compile(r"AWS Error|google::cloud|Azure|curl")


@dataclass
class Reads:
    """Counters of reads from a store.

    Attributes:
        requests: number of object reads and listings.
        bytes: bytes of objects read.
        files: number of objects read.
    """

    requests: int = 0
    bytes: int = 0
    files: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, requests: int = 0, size: int = 0, files: int = 0) -> None:
        with self._lock:
            self.requests += requests
            self.bytes += size
            self.files += files


class Store:
    """A folder of objects, addressed by their names below it."""

    def __init__(self, url: str):
        """Parses the URL, without a request to the store.

        Raises:
            LakeError: the URL is not that of a supported store.
        """
        self.url = url
        self.reads = Reads()
        self.scheme, self._files, self._root = _opened(url)

    def path(self, name: str) -> str:
        """The path of an object in the store's file system."""
        return "/".join(part for part in (self._root, name) if part)

    def spark_url(self, name: str) -> str:
        """The URL of an object for Spark."""
        if self.scheme == "file":
            # Spark takes the path as it is, without percent-encoding.
            return f"file://{self.path(name)}"
        place = self.path(name)
        if self.scheme == "az":
            container, _, below = place.partition("/")
            account = os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", "")
            return f"abfss://{container}@{account}.dfs.core.windows.net/{below}"
        return f"{'s3a' if self.scheme == 's3' else self.scheme}://{place}"

    @property
    def files(self) -> pafs.FileSystem:
        return self._files

    def list(self, folder: str, *, recursive: bool) -> list[tuple[str, bool]]:
        """Names below a folder, relative to it, each with whether it is a file; sorted.

        A folder that does not exist is empty.

        Raises:
            LakeError: the store does not respond, or refuses access.
        """
        whole = self.path(folder)
        selector = pafs.FileSelector(whole, recursive=recursive, allow_not_found=True)
        try:
            found = self._files.get_file_info(selector)
        except (OSError, pa.ArrowException) as error:
            raise self.unreadable(folder, error) from error
        self.reads.add(requests=1 + len(found) // _NAMES_A_REQUEST)
        cut = len(whole) + 1
        return sorted((info.path[cut:], info.type == pafs.FileType.File) for info in found)

    def lacking(self) -> str | None:
        """The missing folder or bucket of the lake; None if it exists."""
        place = self._root if self.scheme == "file" else self._root.split("/")[0]
        if self._kind(place) != pafs.FileType.NotFound:
            return None
        return f"{'folder' if self.scheme == 'file' else 'bucket'} `{place}`"

    def is_file(self) -> bool:
        """Whether the path is a file, and thus not a lake."""
        return self._kind(self._root) == pafs.FileType.File

    def _kind(self, place: str) -> pafs.FileType:
        self.reads.add(requests=1)
        try:
            return self._files.get_file_info(place).type
        except (OSError, pa.ArrowException):
            # Listing a bucket may be allowed while requesting the bucket itself is not.
            return pafs.FileType.Unknown

    def read(self, name: str) -> pa.Buffer:
        """Reads an object in one request.

        Raises:
            FileNotFoundError: the object does not exist.
            LakeError: the store does not respond, or refuses access.
        """
        try:
            with self._files.open_input_file(self.path(name)) as file:
                content = file.read_buffer()
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException) as error:
            if is_gone(error):
                raise FileNotFoundError(name) from error
            raise self.unreadable(name, error) from error
        self.reads.add(requests=1, size=content.size, files=1)
        return content

    def open(self, name: str) -> Any:
        """Opens an object for reading in parts; the caller updates `reads`.

        Raises:
            FileNotFoundError: the object does not exist.
            LakeError: the store does not respond, or refuses access.
        """
        try:
            return self._files.open_input_file(self.path(name))
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException) as error:
            if is_gone(error):
                raise FileNotFoundError(name) from error
            raise self.unreadable(name, error) from error

    def unreadable(self, name: str, error: Exception) -> LakeError:
        """The error for an object that could not be read."""
        return LakeError(
            f"failed to read `{name}` of the lake `{self.url}`",
            causes=[str(error)],
            hint=self._remedy(error),
        )

    def _remedy(self, error: Exception) -> str:
        if self.scheme == "file":
            if isinstance(error, PermissionError):
                return "check the permissions of the folder"
            return "retry; if it fails again, check the disk"
        if _REFUSED.search(str(error)):
            return _KEYS[self.scheme]
        return "the store did not respond: retry, or check its address and the network"


def is_gone(error: Exception) -> bool:
    """Whether the error means that the object does not exist."""
    return isinstance(error, FileNotFoundError) or _GONE.search(str(error)) is not None


def is_of_store(error: Exception) -> bool:
    """Whether the error comes from the store or the disk, not from the content of an object."""
    if not isinstance(error, OSError):
        return False
    return error.errno is not None or _OF_STORE.search(str(error)) is not None


def _opened(url: str) -> tuple[str, pafs.FileSystem, str]:
    parts = urlsplit(url)
    place = f"{parts.netloc}{parts.path}".rstrip("/")
    if "://" not in url:
        if not url:
            raise LakeError("the lake has no name", hint="pass a folder, or s3://BUCKET/PREFIX")
        return "file", pafs.LocalFileSystem(), os.path.abspath(url)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise LakeError(
                f"`{url}` names a host, but only local files are supported",
                hint=f"use file:///{place}",
            )
        return "file", pafs.LocalFileSystem(), parts.path.rstrip("/") or "/"
    makers = {"s3": _s3, "s3a": _s3, "gs": _gs, "gcs": _gs, "az": _az, "abfss": _az}
    maker = makers.get(parts.scheme)
    if maker is None:
        raise LakeError(
            f"unsupported store `{url}`",
            hint="use a folder, file:///…, s3://BUCKET/…, gs://BUCKET/… or az://CONTAINER/…",
        )
    if not parts.netloc:
        raise LakeError(f"`{url}` has no bucket", hint=f"use {parts.scheme}://BUCKET/PREFIX")
    scheme = {_s3: "s3", _gs: "gs", _az: "az"}[maker]
    try:
        return scheme, maker(), place
    except (AttributeError, ImportError, pa.ArrowException, OSError) as error:
        raise LakeError(
            f"failed to open `{url}`", causes=[str(error)], hint=_KEYS[scheme]
        ) from error


def _s3() -> pafs.FileSystem:
    chosen: dict[str, Any] = {}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        chosen |= {"scheme": parts.scheme, "endpoint_override": parts.netloc}
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region or endpoint:
        # Without a region Arrow queries Amazon for it.
        chosen["region"] = region or "us-east-1"
    if os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true"):
        chosen["anonymous"] = True
    return pafs.S3FileSystem(connect_timeout=10, request_timeout=60, **chosen)


def _gs() -> pafs.FileSystem:
    chosen: dict[str, Any] = {}
    endpoint = os.environ.get("STORAGE_EMULATOR_HOST")
    if endpoint:
        parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
        chosen = {"scheme": parts.scheme, "endpoint_override": parts.netloc, "anonymous": True}
    return pafs.GcsFileSystem(**chosen)


def _az() -> pafs.FileSystem:
    name = os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
    if not name:
        raise OSError("AZURE_STORAGE_ACCOUNT_NAME is not set")
    return pafs.AzureFileSystem(
        account_name=name, account_key=os.environ.get("AZURE_STORAGE_ACCOUNT_KEY")
    )
