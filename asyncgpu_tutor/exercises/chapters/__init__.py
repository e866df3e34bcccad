"""The exercises, one file a chapter: what each one checks. Their words are in `course/`."""
