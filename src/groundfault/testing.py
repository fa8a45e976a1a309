"""The place of `groundfault_lab.testing` until 0.2."""

from groundfault.base.registry import forward_module

__getattr__ = forward_module(__name__, "groundfault_lab.testing")
