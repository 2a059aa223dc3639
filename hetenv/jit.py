"""`@kernel`: numba compilation with a disk cache that sees every edit.

Numba's own cache compares only the file of the decorated function, so it runs old code after an edit in a callee or in an
enum. Here one digest over all kernel sources names the cache folder: any edit means a new folder. Kernels take every
setting as an argument; `fastmath` stays off so that compiled and plain results are equal.
"""

import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

try:
    import numba
    from numba.core import event as numba_event
    from numba.core import types as numba_types
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
    from numba.core.types.misc import unliteral
except ImportError:  # the kernels are plain Python then: slow, same results
    numba = None

SLOW_COMPILE_S = 2.0
_ROOT = Path(__file__).parent
_KERNEL_MARKS = (b"@kernel", b"IntEnum", b"np.dtype")


def compiled() -> bool:
    """Whether kernels are compiled (numba is there and NUMBA_DISABLE_JIT is not set)."""
    return numba is not None and not numba.config.DISABLE_JIT


@cache
def source_digest() -> str:
    """Digest of every file whose text can change compiled code: kernels, enums, table layouts."""
    folders = [_ROOT] if (_ROOT / "agents").is_dir() else [_ROOT, _ROOT.parent / "agents"]
    digest = hashlib.sha256(repr((sys.version_info[:2], getattr(numba, "__version__", ""))).encode())
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            text = path.read_bytes()
            if any(mark in text for mark in _KERNEL_MARKS):
                digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + text)
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path | None:
    """Folder of compiled kernels, or None where none can be written (compilation then stays in memory)."""
    candidates = [os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")]
    if os.environ.get("HOME") or os.name == "nt":
        candidates.append(str(Path.home() / ".cache"))
    for base in candidates:
        if not base:
            continue
        folder = Path(base) / "hetenv" / source_digest()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return None


if numba is not None:

    class _DigestLocator(_CacheLocator):  # type: ignore[misc]
        """Places a kernel's cache files in `cache_folder()`; the digest stands in for numba's time stamp."""

        def __init__(self, py_func: Callable[..., Any]) -> None:
            self._py_func, self._py_file = py_func, py_func.__code__.co_filename

        def get_cache_path(self) -> str:
            return str(cache_folder())

        def get_source_stamp(self) -> str:
            return source_digest()

        def get_disambiguator(self) -> str:
            return f"{self._py_func.__module__}.{self._py_func.__code__.co_firstlineno}"

        @classmethod
        def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_DigestLocator | None":
            return cls(py_func) if cache_folder() is not None else None

    class _KernelCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = [_DigestLocator]  # noqa: RUF012

    class _KernelCache(FunctionCache):  # type: ignore[misc]
        _impl_class = _KernelCacheImpl

    class _SlowCompileNotice(numba_event.Listener):  # type: ignore[misc]
        """Says once, on stderr, that kernels are being compiled when that lasts longer than SLOW_COMPILE_S."""

        def __init__(self) -> None:
            self._timer: threading.Timer | None = None
            self._depth = 0
            self._said = False

        def on_start(self, event: Any) -> None:
            self._depth += 1
            if self._depth == 1 and not self._said:
                self._timer = threading.Timer(SLOW_COMPILE_S, self._say)
                self._timer.daemon = True
                self._timer.start()

        def on_end(self, event: Any) -> None:
            self._depth = max(0, self._depth - 1)
            if self._depth == 0 and self._timer is not None:
                self._timer.cancel()

        def _say(self) -> None:
            self._said = True
            print("hetenv: compiling kernels, once per version (`hetenv warmup` does it ahead)", file=sys.stderr)

    @cache
    def _install_notice() -> None:
        numba_event.register("numba:compile", _SlowCompileNotice())

    def _widened(kind: Any) -> Any:
        """The type for which a kernel is compiled where it is called with `kind`."""
        kind = unliteral(kind)
        is_whole = isinstance(kind, numba_types.IntEnumMember) or kind in numba_types.signed_domain
        return numba_types.int64 if is_whole else kind

    def _compile_once(dispatcher: Any) -> None:
        """Have inner calls of a kernel share one compiled form.

        Numba compiles another one for every width of an integer and every constant among the arguments: half of a cold compile.
        """
        find = dispatcher.get_call_template

        def find_widened(args: Any, kws: Any) -> Any:
            return find(tuple(map(_widened, args)), {name: _widened(kind) for name, kind in kws.items()})

        dispatcher.get_call_template = find_widened


def kernel(function: F) -> F:
    """Compile `function` with numba on first call; the plain function where numba is absent or switched off.

    Kernels allocate no arrays (numba's reference counts are off: half the code, and faster); buffers come from the caller.
    """
    if not compiled():
        return function
    _install_notice()
    dispatcher = numba.njit(function, nogil=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False)
    _compile_once(dispatcher)
    if cache_folder() is not None:
        dispatcher._cache = _KernelCache(function)
        dispatcher._can_fallback_to_object_mode = False
    return dispatcher  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Like `kernel`, for thin functions high in the call tree: compiled into each caller.

    Every level of separately compiled callers optimises all the code below it once more, which is most of a cold compile.
    """
    if not compiled():
        return function
    return numba.njit(function, inline="always", nogil=True, error_model="numpy", _nrt=False)  # type: ignore[no-any-return]


def entry(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """The compiled code of a kernel for the types of these arguments, without numba's per-call look at types.

    It saves some 3 us a call. The caller vouches that every later call has arguments of the same types and layouts; `function` is
    called once with `arguments` if it was not compiled for them before. The kernel itself comes back where that is not possible.
    """
    if not compiled() or not hasattr(function, "overloads"):
        return function
    signature = tuple(numba.typeof(argument) for argument in arguments)
    if signature not in function.overloads:
        function.compile(signature)  # type: ignore[attr-defined]
    point = getattr(function.overloads[signature], "entry_point", None)
    return function if point is None else point
