"""`dataclass`, `field` and `replace` for what every summary imports: the standard ones compile each class's
functions when it is made, half a millisecond each, and import inspect and ast for that.

Made here: __init__, __repr__, __eq__, for frozen classes __hash__ too, default values and factories; what
`dataclasses` asks of a class (fields, asdict) is answered when it asks. No InitVar, kw_only, order, slots or
__post_init__.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:

    class _Factory:
        """The default value of a field is what this makes."""

        __slots__ = ("make",)

        def __init__(self, make):
            self.make = make

    def field(*, default_factory):
        return _Factory(default_factory)

    def replace(value, **changes):
        """The same value but for these fields."""
        kept = value.__dict__
        return type(value)(**{name: kept[name] for name in type(value).__value_fields__} | changes)

    def dataclass(kind=None, *, frozen=False):
        if kind is None:
            return lambda kind: dataclass(kind, frozen=frozen)
        defaults = {}
        names = []
        for one in (*reversed(kind.__mro__[1:]), kind):
            for name, stated in getattr(one, "__annotations__", {}).items():
                if stated.startswith("ClassVar"):
                    continue
                if name not in names:
                    names.append(name)
                if name in one.__dict__:
                    defaults[name] = one.__dict__[name]
            defaults |= one.__dict__.get("__value_defaults__", {})
        kind.__value_defaults__ = defaults
        for name, default in defaults.items():
            if isinstance(default, _Factory) and name in kind.__dict__:
                delattr(kind, name)
        kind.__value_fields__ = names = tuple(names)
        kind.__match_args__ = names
        kind.__dataclass_fields__ = _Fields()
        kind.__init__ = _init(kind.__name__, names, defaults)
        kind.__eq__ = _equal
        if "__repr__" not in kind.__dict__:
            kind.__repr__ = _repr
        kind.__hash__ = _hash if frozen else None
        if frozen:
            kind.__setattr__ = kind.__delattr__ = _refuse
        return kind

    def _init(kind, names, defaults):
        count = len(names)

        def __init__(self, *values, **named):
            own = self.__dict__
            own.update(zip(names, values))  # noqa: B905
            at = len(values)
            if at == count and not named:
                return
            if at > count:
                raise TypeError(f"{kind}: {at} values for {count} fields")
            for name in names[at:]:
                if name in named:
                    own[name] = named.pop(name)
                elif name in defaults:
                    default = defaults[name]
                    own[name] = default.make() if isinstance(default, _Factory) else default
                else:
                    raise TypeError(f"{kind}: no value for {name}")
            if named:
                raise TypeError(f"{kind}: what is {', '.join(named)}?")

        return __init__

    def _content(value):
        own = value.__dict__
        return [own[name] for name in type(value).__value_fields__]

    def _equal(self, other):
        return _content(self) == _content(other) if type(self) is type(other) else NotImplemented

    def _hash(self):
        return hash(tuple(_content(self)))

    def _repr(self):
        fields = zip(type(self).__value_fields__, _content(self))  # noqa: B905
        return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in fields)})"

    def _refuse(self, name, *value):
        raise AttributeError(f"{type(self).__name__} is frozen: {name}")

    class _Fields:
        """The class's fields as `dataclasses` knows them, when somebody looks."""

        def __get__(self, instance, kind):
            import dataclasses

            made = []
            for name in kind.__value_fields__:
                known = {}
                if name in kind.__value_defaults__:
                    default = kind.__value_defaults__[name]
                    late = isinstance(default, _Factory)
                    known = {"default_factory": default.make} if late else {"default": default}
                made.append((name, object, dataclasses.field(kw_only=False, **known)))
            fields = dataclasses.make_dataclass(kind.__name__, made).__dataclass_fields__
            kind.__dataclass_fields__ = fields
            return fields


__all__ = ["dataclass", "field", "replace"]
