"""The configuration file -> `core.policy.policy.Policy`, or every fault of the file at once.

    text -> document (values with line and column) -> shape (JSON Schema) -> meaning -> build -> Policy

Callers need `load_policy`, `parse_policy`, `config_map_policy`, `reloaded` and `read_profiles`, and
`ConfigError.render()` when one of them raises it.
"""

from webhook.config.faults import ConfigError, ConfigFault
from webhook.config.files import POLICY_KEY, Loaded, config_map_policy, load_policy, parse_policy, reloaded
from webhook.config.scheduler import read_profiles

__all__ = [
    "POLICY_KEY",
    "ConfigError",
    "ConfigFault",
    "Loaded",
    "config_map_policy",
    "load_policy",
    "parse_policy",
    "read_profiles",
    "reloaded",
]
