"""Opens a rollout as it is stored: plain, or compressed whole (`….jsonl.zst`), which is read as if it were plain."""

import os

from doorward.sessions.home import StoreError
from doorward.sessions.regular_file import open_regular

COMPRESSED = ".zst"


def open_stored(path: str) -> int:
    """A descriptor for pread(2) of the plain bytes. Raises StoreError.

    Of a compressed one they are in a file without a name that ends with the descriptor: everything that reads
    rollouts reads them from both ends and in the middle.
    """
    descriptor = open_regular(path)
    if not path.endswith(COMPRESSED):
        return descriptor
    import tempfile

    from doorward.sessions.zstd import BadFrame, decompressed  # archived and imported sessions only

    plain = -1
    try:
        # on the disk that the rollout is on, not in a /tmp that may be memory
        folder: str | None = os.path.dirname(path)
        if not os.access(os.path.dirname(path), os.W_OK):
            folder = None
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            for data in decompressed(descriptor):
                file.write(data)
            plain = os.dup(file.fileno())
    except BadFrame as error:
        raise StoreError(f"{path} {error}") from error
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)
    return plain
