"""Step marks without editing the script: a step ends when its optimizer has stepped."""

from __future__ import annotations

import weakref
from types import MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def mark_steps(step: Callable[[], None]) -> Callable[[], None]:
    """Call `step` after every step of the first optimizer that steps; returns what ends it.

    One optimizer counts, so that a loop with several has one mark a step; if it is dropped, the next one takes over.
    torch calls its hooks while the range it records around `Optimizer.step` is still open. A mark there would cut the
    range in two, and the last one would be lost with the end of the recording. So the hook replaces the optimizer's own
    `step` by one that marks after its return; where that is passed by (a caller kept the old one), the hook marks.
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook

    marking: weakref.ref[Any] | None = None
    inside = ended = False

    def wrap(optimizer: Any) -> None:
        original = optimizer.step

        def marked(_optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if ended:
                return original(*args, **kwargs)
            inside = True
            try:
                result = original(*args, **kwargs)
            finally:
                inside = False
            step()
            return result

        # Learning-rate schedulers replace a step that must be a method, and look for their mark on it afterwards.
        vars(marked).update(vars(original))
        optimizer.step = MethodType(marked, optimizer)

    def stepped(optimizer: Any, _args: object, _kwargs: object) -> None:
        nonlocal marking
        first = marking() if marking is not None else None
        if first is None:
            marking = weakref.ref(optimizer)
            wrap(optimizer)
            step()
        elif first is optimizer and not inside:
            step()

    handle = register_optimizer_step_post_hook(stepped)

    def end() -> None:
        nonlocal ended
        ended = True
        handle.remove()

    return end
