"""Exercises of 06_await: what each one checks, its hints, and why the solution is right."""

from __future__ import annotations

from asyncgpu_tutor.exercises.exercise import Exercise

__all__ = ["EXERCISES"]

EXERCISES: tuple[Exercise, ...] = ()
