"""Read the configuration file as a `Policy` of the core, or report all of its faults at once.

    text -> document (values with line and column) -> shape (JSON Schema) -> meaning -> build -> Policy

Example:
    try:
        policy = load_policy("policy.yaml").policy
    except ConfigError as error:
        print(error.render())
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
