"""The exercises: what each checks, its starter, solution and hints, and what is asked a second time.

Their words come from `course/`, by way of `answers`.
"""
