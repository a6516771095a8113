package main

// scoresScenario exercises every plugin that scores nodes: requests that are
// whole, partial or missing, soft taints, preferred node affinity, preferences
// between pods in both directions, soft constraints and the system's defaults.
// Filters reject few nodes, so that many are compared.
func scoresScenario(g gen) object {
	t := g.cluster(clusterShape{oddLabels: 0.06, tight: g.chance(0.5), large: 0.02})
	apps := g.apps()
	pod := g.incoming(apps[0])
	labels, spec := labelsOf(pod), specOf(pod)
	s := object{"pod": pod, "nodes": t.nodes, "namespaces": g.namespaces(), "podTopologySpreadArgs": nil, "plugin": "Scores"}

	if g.chance(0.3) {
		for _, n := range t.nodes {
			if g.chance(0.4) {
				ns := specOf(n)
				ns["taints"] = append(listOf(ns["taints"]), anys(some(g, 1, 2,
					object{"key": "soft", "value": pick(g, "x", "y"), "effect": "PreferNoSchedule"},
					object{"key": "spot", "effect": "PreferNoSchedule"},
					object{"key": "level", "value": "3", "effect": "PreferNoSchedule"}))...)
			}
		}
		if g.chance(0.5) {
			spec["tolerations"] = anys(some(g, 1, 2,
				object{"key": "soft", "operator": "Exists", "effect": "PreferNoSchedule"},
				object{"key": "soft", "value": "x"},
				object{"key": "spot", "operator": "Exists"},
				object{"key": "level", "operator": "Exists", "effect": "NoSchedule"}))
		}
	}
	if g.chance(0.5) {
		spec["topologySpreadConstraints"] = g.constraints(labels, g.between(1, 2), 0.15)
	} else if g.chance(0.5) {
		g.owners(s, pod)
	}
	if g.chance(0.35) {
		terms := list{}
		for range g.between(1, 3) {
			terms = append(terms, object{"weight": g.between(1, 100), "preference": g.nodeTerm(t)})
		}
		affinityOf(spec)["nodeAffinity"] = object{"preferredDuringSchedulingIgnoredDuringExecution": terms}
	}
	if g.chance(0.35) {
		g.preferences(labels, spec, false)
	}
	if g.chance(0.6) {
		g.resources(spec)
	}
	others, sized := g.chance(0.4), g.chance(0.7)
	resized := g.chance(0.15)
	s["pods"] = g.existingPods(t, apps, func(g gen, p object) {
		es := specOf(p)
		if sized && g.chance(0.7) {
			g.smallResources(es)
			if resized && g.chance(0.4) {
				g.resize(p)
			}
		}
		if others && g.chance(0.25) {
			g.preferences(labels, es, true)
		}
	})
	return s
}

// preferences adds preferred terms of affinity, anti-affinity or both; a stored
// pod also has required ones, and its keys are merged.
func (g gen) preferences(labels, spec object, stored bool) {
	term := func() object {
		term := g.podTerm(labels)
		if stored {
			delete(term, "matchLabelKeys")
			delete(term, "mismatchLabelKeys")
		}
		return term
	}
	affinity := affinityOf(spec)
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		if !g.chance(0.6) {
			continue
		}
		of := object{}
		if g.chance(0.85) {
			terms := list{}
			for range g.between(1, 2) {
				terms = append(terms, object{"weight": g.between(1, 100), "podAffinityTerm": term()})
			}
			of["preferredDuringSchedulingIgnoredDuringExecution"] = terms
		}
		if stored && kind == "podAffinity" && g.chance(0.4) {
			of["requiredDuringSchedulingIgnoredDuringExecution"] = list{term()}
		}
		affinity[kind] = of
	}
}
