"""Model-written code run in a process that can harm nothing and cannot forge its own verdict."""
