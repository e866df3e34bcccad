"""Right answers to exercises of course/18_token_by_token.py in other forms than the solution's."""
