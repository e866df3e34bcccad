# What this package uses of cupti-python, which is not installed on most machines.
