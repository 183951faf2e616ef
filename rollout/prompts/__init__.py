"""One file a domain: what every role of every multi-agent system is told. Read by :mod:`rollout.prompt`."""
