"""The web console: pages for operators and for analysts, rendered here and served by the proxy's own process."""
