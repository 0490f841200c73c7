"""Optimiser of torch parameters, with running averages and a state that can be saved."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pictopic.models.parameters import ADAM_BETAS, average_decay

_EXACT_STEPS = 200  # first steps, each of which updates the averages
_AVERAGE_EVERY = 4  # steps between two updates afterwards


class Solver:
    """Optimiser of named parameters whose gradients are in ``.grad``.

    Parameters
    ----------
    parameters : dict of str to Tensor
        Empty tensors are ignored.
    kind : {"adam", "adamw", "sgd"}
    learning_rate : float
    rates : dict of str to float, optional
        Factors of the learning rate, by parameter name.
    averaging : float
        Decay per step of the exponential averages; 0 for none.
    weight_decay : float
        Only for "adamw", on matrices: a step shrinks them by learning_rate * weight_decay.
    not_decayed : tuple of str
        Matrices that do not decay.
    """

    def __init__(
        self, parameters: dict[str, Tensor], *, kind: str, learning_rate: float, rates: dict[str, float] | None = None,
        averaging: float = 0.0, weight_decay: float = 0.0, not_decayed: tuple[str, ...] = (),
    ):  # fmt: skip
        self.parameters = {name: tensor for name, tensor in parameters.items() if tensor.numel()}
        self.averages = {name: tensor.detach().clone() for name, tensor in self.parameters.items()} if averaging else {}
        self.averaging = averaging
        tensors_of: dict[tuple[float, float], list[Tensor]] = {}
        for name, tensor in self.parameters.items():
            decay = weight_decay if kind == "adamw" and tensor.ndim == 2 and name not in not_decayed else 0.0
            tensors_of.setdefault(((rates or {}).get(name, 1.0), decay), []).append(tensor)
        # A parameter that learns faster does not decay faster.
        groups = [
            {"params": tensors, "lr": learning_rate * factor, "weight_decay": decay / factor}
            for (factor, decay), tensors in tensors_of.items()
        ]
        # Fused: one pass over each parameter instead of one per operation.
        self.optimizer: torch.optim.Optimizer
        if kind == "sgd":
            self.optimizer = torch.optim.SGD(groups, lr=learning_rate, fused=True)
        else:
            adam = torch.optim.AdamW if kind == "adamw" else torch.optim.Adam
            self.optimizer = adam(groups, lr=learning_rate, betas=ADAM_BETAS, fused=True)
        self.n_done = 0

    @torch.no_grad()
    def step(self) -> None:
        """Do one step."""
        self.optimizer.step()
        self.n_done += 1
        # Later, every few steps are enough: the average hardly moves in one, but all of it is read and written.
        every = 1 if self.n_done < _EXACT_STEPS else _AVERAGE_EVERY
        if self.averaging and self.n_done % every == 0:
            weight = 1 - average_decay(self.averaging, self.n_done) ** every
            torch._foreach_lerp_(list(self.averages.values()), list(self.parameters.values()), weight)

    def used(self) -> dict[str, Tensor]:
        """Return the averages, or without averaging the parameters."""
        return self.averages or self.parameters

    def state(self) -> dict[str, Any]:
        """Return the state from which training can be resumed, as plain tensors and numbers."""
        tensors = {f"theta.{name}": tensor.detach() for name, tensor in self.parameters.items()}
        tensors |= {f"average.{name}": tensor for name, tensor in self.averages.items()}
        for name, tensor in self.parameters.items():
            for key, value in self.optimizer.state[tensor].items():
                if isinstance(value, Tensor):
                    tensors[f"{key}.{name}"] = value
        return {"tensors": tensors, "n_done": self.n_done}

    @torch.no_grad()
    def resume(self, state: dict[str, Any]) -> None:
        """Continue from a `state`."""
        tensors = state["tensors"]
        for name, tensor in self.parameters.items():
            tensor.copy_(tensors[f"theta.{name}"])
            if self.averages:
                self.averages[name].copy_(tensors[f"average.{name}"])
            memory = {key: tensors[f"{key}.{name}"] for key in ("step", "exp_avg", "exp_avg_sq")
                      if f"{key}.{name}" in tensors}  # fmt: skip
            self.optimizer.state[tensor] = {key: value.clone() for key, value in memory.items()}
        self.n_done = state["n_done"]
