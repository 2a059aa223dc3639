"""Tuples of tables handed from kernel to kernel by address.

numba passes a named tuple of arrays as its hundred-odd words, and compiles that many moves into every call. `by_reference` in
a compiled entry puts the tuple on the entry's stack once; inner kernels get one pointer and load what they touch. Attribute
access reads the same (`state.jobs`), and plain Python is unaffected: there `by_reference` returns its argument.
"""

from typing import Any, TypeVar

T = TypeVar("T")

try:
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
    from numba.core.typing.templates import AttributeTemplate, infer_getattr
    from numba.extending import intrinsic, models, register_model
except ImportError:

    def by_reference(tables: T) -> T:
        """The tuple itself where nothing is compiled."""
        return tables

else:
    from hetenv.jit import compiled

    class Reference(types.Type):
        """Address of a named tuple that lives on the stack of a calling kernel."""

        def __init__(self, target: Any) -> None:
            self.target = target
            super().__init__(name=f"Reference({target})")

    @register_model(Reference)
    class _ReferenceModel(models.PrimitiveModel):  # type: ignore[misc]
        def __init__(self, manager: Any, fe_type: Reference) -> None:
            pointer = ir.PointerType(manager.lookup(fe_type.target).get_value_type())
            super().__init__(manager, fe_type, pointer)

    @infer_getattr
    class _ReferenceAttributes(AttributeTemplate):  # type: ignore[misc]
        key = Reference

        def generic_resolve(self, reference: Reference, attribute: str) -> Any:
            return reference.target.types[reference.target.fields.index(attribute)]

    @lower_getattr_generic(Reference)  # type: ignore[untyped-decorator]
    def _load(context: Any, builder: Any, reference: Reference, pointer: Any, attribute: str) -> Any:
        place = reference.target.fields.index(attribute)
        table = builder.load(cgutils.gep_inbounds(builder, pointer, 0, place))
        return impl_ret_borrowed(context, builder, reference.target.types[place], table)

    @intrinsic  # type: ignore[untyped-decorator]
    def _by_reference(context: Any, tables: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            slot = cgutils.alloca_once(builder, arguments[0].type)
            builder.store(arguments[0], slot)
            return slot

        return Reference(tables)(tables), codegen

    def _plain(tables: T) -> T:
        """The tuple itself where nothing is compiled."""
        return tables

    by_reference = _by_reference if compiled() else _plain
