"""Superset's own settings file: read by Superset, which knows nothing of the tests."""

# Scripts send a token with each request, and no cookie that a foreign page could borrow.
WTF_CSRF_ENABLED = False
