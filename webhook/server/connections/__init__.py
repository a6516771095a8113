"""Connections: accepting them, which one gives way where there is no room for all, and reading one."""
