package main

import "fmt"

const csiDriver = "csi.example.com"

// storageScenario exercises what VolumeBinding and NodeVolumeLimits read of
// storage drivers: capacity that they publish, volumes that are attached, and
// the nodes on which they are installed.
func storageScenario(g gen) object {
	t := g.cluster(clusterShape{oddLabels: 0.06})
	pod := g.incoming(g.apps()[0])
	spec := specOf(pod)
	s := object{"pod": pod, "nodes": t.nodes, "namespaces": g.namespaces(), "podTopologySpreadArgs": nil}
	g.volumes(t, s, spec)
	for _, c := range listOf(s["persistentVolumeClaims"]) {
		claim := c.(object)["spec"].(object)
		// The generator's claims share one value.
		claim["resources"] = object{"requests": object{"storage": pick(g, "1Gi", "5Gi", "5Gi", "5368709121", "6e9", "20Gi")}}
		if g.chance(0.05) {
			claim["resources"] = object{}
		}
	}
	if g.chance(0.25) {
		g.mixedDrivers(s)
	}
	s["pods"] = g.storagePods(t, s)
	g.csiNodes(t, s)
	g.csiDrivers(s)
	if g.chance(0.85) {
		s["csiStorageCapacities"] = g.capacities(t)
	}
	return s
}

// mixedDrivers gives one class an in-tree provisioner or that of another driver.
func (g gen) mixedDrivers(s object) {
	for _, c := range s["storageClasses"].(list) {
		if class := c.(object); class["metadata"].(object)["name"] == "anywhere" {
			class["provisioner"] = pick(g, "other.example.com", "kubernetes.io/aws-ebs", "example.com/nfs", "")
		}
	}
}

// storagePods places pods with volumes of the driver, and attaches volumes with
// and without pods.
func (g gen) storagePods(t topology, s object) list {
	var pods, attachments list
	volumes, claims := listOf(s["persistentVolumes"]), listOf(s["persistentVolumeClaims"])
	for i := range g.between(0, 6) {
		pv, name, node := fmt.Sprintf("other-%d", i), fmt.Sprintf("other-%d", i), t.names[g.IntN(len(t.names))]
		vs := object{"capacity": object{"storage": "10Gi"}, "accessModes": list{"ReadWriteOnce"}, "storageClassName": "fast"}
		if g.chance(0.85) {
			vs["csi"] = object{"driver": pick(g, csiDriver, csiDriver, csiDriver, "other.example.com"), "volumeHandle": pick(g, "h-"+pv, "h-"+pv, "h-shared")}
		} else {
			vs["awsElasticBlockStore"] = object{"volumeID": "vol-" + pv}
		}
		vs["claimRef"] = object{"kind": "PersistentVolumeClaim", "namespace": "shop", "name": name, "uid": "uid-" + name}
		if g.chance(0.93) {
			volumes = append(volumes, object{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": object{"name": pv, "uid": "uid-" + pv}, "spec": vs, "status": object{"phase": "Bound"}})
		}
		claims = append(claims, object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": object{"name": name, "namespace": "shop", "uid": "uid-" + name,
			"annotations": object{"pv.kubernetes.io/bind-completed": "yes"}},
			"spec":   object{"accessModes": list{"ReadWriteOnce"}, "storageClassName": "fast", "volumeName": pv, "resources": object{"requests": object{"storage": "5Gi"}}},
			"status": object{"phase": "Bound"}})
		if g.chance(0.6) {
			pods = append(pods, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": fmt.Sprintf("holds-%d", i), "namespace": "shop", "uid": fmt.Sprintf("uid-holds-%d", i)},
				"spec": object{"nodeName": node, "containers": list{object{"name": "main", "image": "registry.example/app:1"}},
					"volumes": list{object{"name": "data", "persistentVolumeClaim": object{"claimName": name}}}},
				"status": object{"phase": "Running"}})
		}
		if g.chance(0.75) {
			if g.chance(0.25) {
				node = t.names[g.IntN(len(t.names))]
			}
			attachments = append(attachments, g.attachment(fmt.Sprintf("va-%d", i), node, pv))
		}
	}
	if g.chance(0.3) { // the pod's own volume is still attached somewhere
		attachments = append(attachments, g.attachment("va-own", t.names[g.IntN(len(t.names))], "pv-0"))
	}
	if volumes != nil {
		s["persistentVolumes"] = volumes
	}
	if claims != nil {
		s["persistentVolumeClaims"] = claims
	}
	if attachments != nil {
		s["volumeAttachments"] = attachments
	}
	if pods == nil {
		return list{}
	}
	return pods
}

func (g gen) attachment(name, node, pv string) object {
	source := object{"persistentVolumeName": pv}
	switch {
	case g.chance(0.05):
		source = object{"inlineVolumeSpec": object{"accessModes": list{"ReadWriteOnce"}}}
	case g.chance(0.05):
		source["persistentVolumeName"] = "gone"
	}
	attacher := weighted(g, choice[string]{88, csiDriver}, choice[string]{9, "other.example.com"}, choice[string]{3, ""})
	return object{"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": object{"name": name},
		"spec": object{"attacher": attacher, "nodeName": node, "source": source}, "status": object{"attached": g.chance(0.8)}}
}

func (g gen) csiNodes(t topology, s object) {
	var nodes list
	for _, name := range t.names {
		if g.chance(0.15) {
			continue
		}
		drivers := list{}
		for _, driver := range []string{csiDriver, "other.example.com", "ebs.csi.aws.com"} {
			if !g.chance(0.75) {
				continue
			}
			d := object{"name": driver, "nodeID": name}
			if g.chance(0.8) {
				d["allocatable"] = object{"count": pick(g, 1, 2, 2, 3, 20)}
			}
			drivers = append(drivers, d)
		}
		nodes = append(nodes, object{"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": object{"name": name}, "spec": object{"drivers": drivers}})
	}
	if nodes == nil {
		delete(s, "csiNodes")
		return
	}
	s["csiNodes"] = nodes
}

func (g gen) csiDrivers(s object) {
	var drivers list
	insists := g.chance(0.5)
	for _, name := range []string{csiDriver, "other.example.com", "ebs.csi.aws.com"} {
		if g.chance(0.2) {
			continue
		}
		spec := object{}
		if g.chance(0.8) {
			spec["storageCapacity"] = g.chance(0.85)
		}
		// Two drivers that are missing would be named in the random order of a map.
		if name == csiDriver && insists {
			spec["preventPodSchedulingIfMissing"] = g.chance(0.85)
		}
		drivers = append(drivers, object{"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": object{"name": name}, "spec": spec})
	}
	if drivers != nil {
		s["csiDrivers"] = drivers
	}
}

func (g gen) capacities(t topology) list {
	out := list{}
	for i := range g.between(0, 7) {
		topology := weighted(g,
			choice[any]{40, object{"matchLabels": object{zoneKey: t.zones[g.IntN(len(t.zones))]}}},
			choice[any]{20, object{"matchLabels": object{hostnameKey: t.names[g.IntN(len(t.names))]}}},
			choice[any]{12, object{"matchExpressions": list{object{"key": zoneKey, "operator": pick(g, "In", "NotIn"), "values": list{t.zones[0]}}}}},
			choice[any]{8, object{"matchExpressions": list{object{"key": "pool", "operator": pick(g, "Exists", "DoesNotExist")}}}},
			choice[any]{10, object{}},
			choice[any]{10, nil},
		)
		c := object{"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": object{"name": fmt.Sprintf("capacity-%d", i), "namespace": pick(g, "kube-system", "shop")},
			"storageClassName": pick(g, "anywhere", "anywhere", "zonal", "local", "fast")}
		if topology != nil {
			c["nodeTopology"] = topology
		}
		if g.chance(0.9) {
			c["capacity"] = pick(g, "0", "1Gi", "5Gi", "5368709120", "5369M", "6000000000", "100Gi", "0.5Ti")
		}
		if g.chance(0.25) {
			c["maximumVolumeSize"] = pick(g, "1Gi", "5Gi", "50Gi")
		}
		out = append(out, c)
	}
	return out
}
