"""A plugin of mypy: `row.get("typo")` is an error, as `row["typo"]` is one of mypy itself."""

from __future__ import annotations

from collections.abc import Callable

from mypy.errorcodes import TYPEDDICT_ITEM
from mypy.plugin import MethodContext, Plugin
from mypy.plugins.default import typed_dict_get_callback
from mypy.typeops import try_getting_str_literals
from mypy.types import Type, TypedDictType


class TypedDictKeys(Plugin):
    """Looks at `get` of dictionaries whose type names their keys."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """Return what looks at a call of a method."""
        return _checked if fullname == "typing.Mapping.get" else None


def _checked(call: MethodContext) -> Type:
    if isinstance(call.type, TypedDictType) and call.args and call.args[0]:
        keys = try_getting_str_literals(call.args[0][0], call.arg_types[0][0]) or ()
        for key in keys:
            if key not in call.type.items:
                message = f'TypedDict has no key "{key}"'
                call.api.fail(message, call.context, code=TYPEDDICT_ITEM)
    return typed_dict_get_callback(call)


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin."""
    return TypedDictKeys
