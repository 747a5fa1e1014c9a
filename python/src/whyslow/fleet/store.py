"""Where a lake is: a folder, or a bucket of an object store; reading only, and counted.

Stores are those of Arrow. Keys and endpoints come from the environment, by the names that the
stores' own tools have, so that nothing secret is ever written on a command line.
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

#: A listing of an object store has so many names a request.
_NAMES_A_REQUEST = 1000
_KEYS = {
    "s3": "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION (and AWS_ENDPOINT_URL "
    "where it is not Amazon's)",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS to the file with the key",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
# By what they say stores tell apart that there is no such object, that they refuse whoever asks,
# and that they are not there at all.
_GONE = re.compile(r"NO_SUCH_KEY|RESOURCE_NOT_FOUND|HTTP status 404|BlobNotFound|NOT_FOUND:")
_REFUSED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|INVALID_CLIENT_TOKEN|INVALID_SIGNATURE|SIGNATURE_DOES_NOT"
    r"|EXPIRED_TOKEN|UNRECOGNIZED_CLIENT|MISSING_AUTH|HTTP status (30\d|40[13])|PERMISSION_DENIED"
    r"|UNAUTHENTICATED|AuthenticationFailed|AuthorizationFailure|[Cc]redentials"
)
_OF_STORE = re.compile(r"AWS Error|google::cloud|Azure|curl")


@dataclass
class Reads:
    """What was read of a store.

    Attributes:
        requests: objects read and listings asked for.
        bytes: of the objects.
        files: objects read.
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
    """A folder of objects by their names below it."""

    def __init__(self, url: str):
        """Finds the store; nothing is asked of it yet.

        Raises:
            LakeError: an URL of no known store.
        """
        self.url = url
        self.reads = Reads()
        self.scheme, self._files, self._root = _opened(url)

    def path(self, name: str) -> str:
        """An object's name as the store's file system has it."""
        return "/".join(part for part in (self._root, name) if part)

    def spark_url(self, name: str) -> str:
        """An object's name as Spark reads it."""
        if self.scheme == "file":
            # Spark takes names as they are, not as URLs have them.
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

        A folder that does not exist has none.

        Raises:
            LakeError: the store does not answer, or not to us.
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
        """What does not exist of where the lake is said to be: the folder, or the bucket."""
        place = self._root if self.scheme == "file" else self._root.split("/")[0]
        if self._kind(place) != pafs.FileType.NotFound:
            return None
        return f"{'folder' if self.scheme == 'file' else 'bucket'} `{place}`"

    def is_file(self) -> bool:
        """Whether the lake is a file, and so is none."""
        return self._kind(self._root) == pafs.FileType.File

    def _kind(self, place: str) -> pafs.FileType:
        self.reads.add(requests=1)
        try:
            return self._files.get_file_info(place).type
        except (OSError, pa.ArrowException):
            # Who may list what is in a bucket need not be allowed to ask for the bucket itself.
            return pafs.FileType.Unknown

    def read(self, name: str) -> pa.Buffer:
        """All of an object, in one request.

        Raises:
            FileNotFoundError: there is none.
            LakeError: the store does not answer, or not to us.
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
        """An object to read in parts; whoever reads adds to `reads`.

        Raises:
            FileNotFoundError: there is none.
            LakeError: the store does not answer, or not to us.
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
        """What to say of an object that the store did not give."""
        return LakeError(
            f"failed to read `{name}` of the lake `{self.url}`",
            causes=[str(error)],
            hint=self._remedy(error),
        )

    def _remedy(self, error: Exception) -> str:
        if self.scheme == "file":
            if isinstance(error, PermissionError):
                return "look whether you may read that folder"
            return "ask again; if that does not help, look at the disk"
        if _REFUSED.search(str(error)):
            return _KEYS[self.scheme]
        return "the store did not answer: ask again, or look at its address and at the network"


def is_gone(error: Exception) -> bool:
    """Whether a store says that there is no such object."""
    return isinstance(error, FileNotFoundError) or _GONE.search(str(error)) is not None


def is_of_store(error: Exception) -> bool:
    """Whether that is the store's or the disk's failure, not one of what an object holds."""
    if not isinstance(error, OSError):
        return False
    return error.errno is not None or _OF_STORE.search(str(error)) is not None


def _opened(url: str) -> tuple[str, pafs.FileSystem, str]:
    parts = urlsplit(url)
    place = f"{parts.netloc}{parts.path}".rstrip("/")
    if "://" not in url:
        if not url:
            raise LakeError("a lake needs a name", hint="give a folder, or s3://BUCKET/PREFIX")
        return "file", pafs.LocalFileSystem(), os.path.abspath(url)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise LakeError(
                f"`{url}` names a host", hint=f"files are those of this one: file:///{place}"
            )
        return "file", pafs.LocalFileSystem(), parts.path.rstrip("/") or "/"
    makers = {"s3": _s3, "s3a": _s3, "gs": _gs, "gcs": _gs, "az": _az, "abfss": _az}
    maker = makers.get(parts.scheme)
    if maker is None:
        raise LakeError(
            f"`{url}` is of no store that is known",
            hint="lakes are folders, file:///…, s3://BUCKET/…, gs://BUCKET/… and az://CONTAINER/…",
        )
    if not parts.netloc:
        raise LakeError(f"`{url}` names no bucket", hint=f"write {parts.scheme}://BUCKET/PREFIX")
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
        # Without one Arrow asks Amazon where the bucket is.
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
