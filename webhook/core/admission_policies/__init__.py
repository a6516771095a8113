"""ValidatingAdmissionPolicies with the rules about the object alone, for kube-apiserver to evaluate."""
