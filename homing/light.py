"""What a summary needs of the standard library's larger modules. Importing contextlib, functools, json and
signal brings in collections, enum and re, and takes longer than all of homing's own modules.

Type checkers see the originals. `dataclass` is in homing/values.py, `re.compile` in homing/late.py.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from contextlib import contextmanager, suppress
    from functools import cache, cached_property, lru_cache
    from json import loads
else:
    import _signal as signal  # numbers in place of the constants of an enum

    try:
        from _json import make_scanner
    except ImportError:
        make_scanner = None

    class suppress:
        """contextlib.suppress()."""

        def __init__(self, *kinds):
            self._kinds = kinds

        def __enter__(self):
            return self

        def __exit__(self, kind, value, trace):
            return kind is not None and issubclass(kind, self._kinds)

    class _Context:
        """What a function of @contextmanager gives."""

        def __init__(self, steps):
            self._steps = steps

        def __enter__(self):
            return next(self._steps)

        def __exit__(self, kind, value, trace):
            steps = self._steps
            if kind is None:
                for _ in steps:
                    raise RuntimeError("generator didn't stop")
                return False
            try:
                steps.throw(value)
            except StopIteration as stop:
                return stop is not value
            except RuntimeError as error:
                # A StopIteration of the block comes out of a generator as the cause of another error.
                if error is value or (isinstance(value, StopIteration) and error.__cause__ is value):
                    return False
                raise
            except BaseException as error:
                if error is value:
                    return False
                raise
            raise RuntimeError("generator didn't stop after throw()")

    def contextmanager(function):
        """contextlib.contextmanager(), but for use as a decorator."""

        def manager(*values, **named):
            return _Context(function(*values, **named))

        manager.__name__ = function.__name__
        manager.__doc__ = function.__doc__
        manager.__wrapped__ = function
        return manager

    class cached_property:
        """functools.cached_property()."""

        def __init__(self, function):
            self._function = function
            self._name = function.__name__
            self.__doc__ = function.__doc__

        def __get__(self, instance, kind=None):
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._function(instance)
            return value

    def lru_cache(maxsize):
        """functools.lru_cache(), of values without names."""

        def decorate(function):
            known = {}

            def cached(*values):
                if values in known:
                    found = known[values] = known.pop(values)  # the newest again
                    return found
                found = known[values] = function(*values)
                if maxsize is not None and len(known) > maxsize:
                    known.pop(next(iter(known)), None)
                return found

            cached.cache_clear = known.clear
            cached.__name__ = function.__name__
            cached.__doc__ = function.__doc__
            cached.__wrapped__ = function
            return cached

        return decorate

    cache = lru_cache(None)

    class _Settings:
        """Those of json.loads()."""

        strict = True
        object_hook = object_pairs_hook = None
        parse_float, parse_int = float, int
        parse_constant = float

    _scan = make_scanner(_Settings) if make_scanner else None

    def loads(text):
        """json.loads(), which also says what is wrong in a text."""
        if _scan:
            try:
                plain = text if isinstance(text, str) else str(text, "utf-8", "surrogatepass")
                value, end = _scan(plain, 0)
                if end == len(plain):
                    return value
            except (StopIteration, ValueError):
                pass
        import json

        return json.loads(text)


__all__ = ["cache", "cached_property", "contextmanager", "loads", "lru_cache", "signal", "suppress"]
