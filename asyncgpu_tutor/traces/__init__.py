"""Everything that you see: spans, the files that hold them, the numbers read out of them,
and their pictures.
"""
