//go:build !before137

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

func hard(key string) object {
	return object{"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": object{"matchLabels": object{"app": "w"}}}
}

// worldOf has so many nodes in each zone and pods w with these constraints.
func worldOf(zones []int, replicas int, constraints ...any) object {
	var nodes list
	for z, size := range zones {
		for i := range size {
			name := fmt.Sprintf("n%d%d", z, i)
			nodes = append(nodes, object{
				"metadata": object{"name": name, "labels": object{hostnameKey: name, zoneKey: fmt.Sprintf("z%d", z)}},
				"status":   object{"allocatable": object{"cpu": "4", "memory": "8Gi", "pods": "110"}},
			})
		}
	}
	return object{"id": "t", "nodes": nodes, "pods": list{}, "template": podOf(constraints...), "replicas": replicas}
}

func podOf(constraints ...any) object {
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "w", "namespace": "default", "labels": object{"app": "w"}},
		"spec": object{"containers": list{object{"name": "c", "image": "i"}}, "topologySpreadConstraints": list(constraints)}}
}

func placementOf(t *testing.T, world object) *Placement {
	t.Helper()
	b, err := marshal(world)
	if err != nil {
		t.Fatal(err)
	}
	p, err := placeOptions{states: 3000, samples: 60}.place(b)
	if err != nil {
		t.Fatal(err)
	}
	if p.Error != "" {
		t.Fatal(p.Error)
	}
	return p
}

// A pod that terminates holds its node's room and its name until it is gone, and
// counts for affinity alone: where that matters, orders differ.
func TestTerminating(t *testing.T) {
	for _, c := range []struct {
		name         string
		affinity     string
		ordered      bool
		unreachable  bool
		queued       int
		fewest, most int
	}{
		{"it is made anew in its turn", "", true, false, 2, 2, 2},
		{"in any order", "", false, false, 2, 2, 2},
		{"the name of one that nobody removes", "", true, true, 1, 1, 1},
		{"others come near it or never", "other", false, false, 2, 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			world := worldOf([]int{1, 1}, 0)
			leaving := podOf()
			meta := leaving["metadata"].(object)
			meta["name"], meta["deletionTimestamp"] = "w-0", "2026-11-24T06:00:00Z"
			meta["labels"] = object{"app": "other"}
			leaving["spec"].(object)["nodeName"] = "n00"
			world["pods"], world["own"], world["terminating"] = list{leaving}, []string{"default/w-0"}, true
			var ordinals list
			for i := range 2 {
				pod := podOf()
				pod["metadata"].(object)["name"] = fmt.Sprintf("w-%d", i)
				if c.affinity != "" {
					pod["metadata"].(object)["name"] = fmt.Sprintf("v-%d", i)
					term := object{"topologyKey": zoneKey, "labelSelector": object{"matchLabels": object{"app": c.affinity}}}
					pod["spec"].(object)["affinity"] = object{"podAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": list{term}}}
				}
				ordinals = append(ordinals, pod)
			}
			world["ordinals"], world["ordered"] = ordinals, c.ordered
			delete(world, "template")
			if c.unreachable {
				world["nodes"].(list)[0].(object)["spec"] = object{"taints": list{object{"key": corev1.TaintNodeUnreachable, "effect": "NoExecute"}}}
			}
			p := placementOf(t, world)
			if p.Queued != c.queued || p.Fewest != c.fewest || p.Most != c.most || !p.Exact {
				t.Errorf("queued %d, fewest %d, most %d, exact %v: want %d, %d, %d", p.Queued, p.Fewest, p.Most, p.Exact, c.queued, c.fewest, c.most)
			}
		})
	}
}

func TestPlace(t *testing.T) {
	with := func(world object, key string, value any) object { world[key] = value; return world }
	both := []any{hard(zoneKey), hard(hostnameKey)}
	lose := func(truth string) object { return object{"key": zoneKey, "value": "z0", "truth": truth} }
	on := func(name, node string) object {
		pod := podOf(hard(zoneKey))
		pod["metadata"].(object)["name"] = name
		pod["spec"].(object)["nodeName"] = node
		return pod
	}
	ordinal := func(name, claim string) object {
		pod := podOf(hard(zoneKey))
		pod["metadata"].(object)["name"] = name
		pod["spec"].(object)["volumes"] = list{object{"name": "data", "persistentVolumeClaim": object{"claimName": claim}}}
		return pod
	}
	// Two ordinals, the first with a volume in z1, the second with one in z0 or none yet.
	stateful := func(ordered bool) object {
		world := worldOf([]int{1, 1}, 0)
		delete(world, "template")
		world["ordinals"] = list{ordinal("w-0", "bound"), ordinal("w-1", "bound-too"), ordinal("w-2", "free")}
		world["ordered"] = ordered
		world["storageClasses"] = list{object{"metadata": object{"name": "late"}, "provisioner": "x.example", "volumeBindingMode": "WaitForFirstConsumer"}}
		claim := func(name, volume string) object {
			return object{"metadata": object{"name": name, "namespace": "default", "annotations": object{"pv.kubernetes.io/bind-completed": "yes"}},
				"spec":   object{"storageClassName": "late", "volumeName": volume, "accessModes": list{"ReadWriteOnce"}, "resources": object{"requests": object{"storage": "1Gi"}}},
				"status": object{"phase": "Bound"}}
		}
		free := claim("free", "")
		free["metadata"].(object)["annotations"] = object{}
		free["status"] = object{"phase": "Pending"}
		world["persistentVolumeClaims"] = list{claim("bound", "v0"), claim("bound-too", "v1"), free}
		volume := func(name, claim string) object {
			return object{"metadata": object{"name": name}, "spec": object{"storageClassName": "late", "capacity": object{"storage": "1Gi"}, "accessModes": list{"ReadWriteOnce"},
				"claimRef": object{"namespace": "default", "name": claim},
				"nodeAffinity": object{"required": object{"nodeSelectorTerms": list{object{"matchExpressions": list{
					object{"key": zoneKey, "operator": "In", "values": list{"z1"}}}}}}}}}
		}
		world["persistentVolumes"] = list{volume("v0", "bound"), volume("v1", "bound-too")}
		return world
	}
	for _, tc := range []struct {
		name                                string
		world                               object
		staying, lost, queued, fewest, most int
	}{
		// The closed forms for two zones of m < M nodes.
		{"zones of 1 and 4 nodes", worldOf([]int{1, 4}, 6, both...), 0, 0, 6, 3, 3},
		{"zones of 1 and 2 nodes", worldOf([]int{1, 2}, 8, both...), 0, 0, 8, 5, 5},
		{"zones of 2 and 3 nodes", worldOf([]int{2, 3}, 12, both...), 0, 0, 12, 9, 9},
		{"zones of 3 and 4 nodes", worldOf([]int{3, 4}, 16, both...), 0, 0, 16, 13, 13},
		{"equal zones", worldOf([]int{4, 4, 4}, 10, both...), 0, 0, 10, 10, 10},
		{"a zone unreachable holds the others down", with(worldOf([]int{2, 2, 2}, 6, hard(zoneKey)), "lose", lose("unreachable")), 0, 0, 6, 2, 2},
		{"a zone gone does not", with(worldOf([]int{2, 2, 2}, 6, hard(zoneKey)), "lose", lose("gone")), 0, 0, 6, 6, 6},
		{"running pods stay",
			with(with(worldOf([]int{1, 1}, 4, hard(zoneKey)), "pods", list{on("a", "n00"), on("b", "n00")}), "own", list{"default/a", "default/b"}), 2, 0, 2, 2, 2},
		{"or are placed anew",
			with(with(with(worldOf([]int{1, 1}, 4, hard(zoneKey)), "pods", list{on("a", "n00"), on("b", "n00")}), "own", list{"default/a", "default/b"}), "anew", true), 0, 0, 4, 4, 4},
		{"a Deployment's pods of a lost zone are replaced",
			with(with(with(worldOf([]int{1, 1}, 2, hard(zoneKey)), "pods", list{on("a", "n00"), on("b", "n10")}), "own", list{"default/a", "default/b"}), "lose", lose("unreachable")), 1, 0, 1, 0, 0},
		{"volumes hold two in one zone, and the third may come first", stateful(false), 0, 0, 3, 1, 3},
		{"in order, the second waits for ever", stateful(true), 0, 0, 3, 1, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := placementOf(t, tc.world)
			got := []int{p.Staying, p.Lost, p.Queued, p.Fewest, p.Most}
			if want := []int{tc.staying, tc.lost, tc.queued, tc.fewest, tc.most}; fmt.Sprint(got) != fmt.Sprint(want) || !p.Exact {
				t.Errorf("got %v (exact %v), want %v: %v %s", got, p.Exact, want, p.Witness, p.Message)
			}
			if len(p.Witness) != p.Fewest {
				t.Errorf("witness %v of %d", p.Witness, p.Fewest)
			}
		})
	}
}

// What is lost once all run: the pods of the lost zone wait, one apart from the
// rest, or all where the zone is deleted and the next one takes them.
func TestPlaceLosesAfterwards(t *testing.T) {
	for _, tc := range []struct {
		truth                        string
		queued, pending, mostPending int
	}{{"unreachable", 2, 2, 2}, {"gone", 2, 0, 0}} {
		world := worldOf([]int{2, 2, 2}, 6, hard(zoneKey))
		world["lose"] = object{"key": zoneKey, "value": "z1", "truth": tc.truth, "after": true}
		p := placementOf(t, world)
		if p.Queued != tc.queued || p.Pending != tc.pending || p.MostPending != tc.mostPending || !p.Exact {
			t.Errorf("%s: got %+v", tc.truth, p)
		}
	}
}

// A StatefulSet's pod on an unreachable node is not replaced.
func TestPlaceKeepsTheNamesOfUnreachablePods(t *testing.T) {
	world := worldOf([]int{1, 1}, 0)
	delete(world, "template")
	pods := list{}
	for i, node := range []string{"n00", "n10"} {
		pod := podOf(hard(zoneKey))
		pod["metadata"].(object)["name"] = fmt.Sprintf("w-%d", i)
		world["ordinals"] = append(list{}, append(pods, pod)...)
		running := podOf(hard(zoneKey))
		running["metadata"].(object)["name"] = fmt.Sprintf("w-%d", i)
		running["spec"].(object)["nodeName"] = node
		pods = append(pods, running)
	}
	world["pods"], world["own"] = pods, list{"default/w-0", "default/w-1"}
	world["lose"] = object{"key": zoneKey, "value": "z0", "truth": "unreachable"}
	if p := placementOf(t, world); p.Staying != 1 || p.Lost != 1 || p.Queued != 0 {
		t.Errorf("got %+v", p)
	}
}

// Past the bound, what is said of the orders that were tried lies within what
// all orders come to.
func TestPlaceSamples(t *testing.T) {
	for replicas := range 8 {
		world := worldOf([]int{1, 1, 2}, replicas, hard(zoneKey), hard(hostnameKey))
		exact := placementOf(t, world)
		world["states"] = 1
		p := placementOf(t, world)
		if replicas > 0 && (p.Exact || p.Fewest != exact.Fewest || p.Most != exact.Most) {
			t.Errorf("%d replicas: got %d to %d, want %d to %d", replicas, p.Fewest, p.Most, exact.Fewest, exact.Most)
		}
	}
}

// bruteForce places the pods in every order, building the scheduler anew for
// each step, and tells nothing apart.
func bruteForce(t *testing.T, c Cluster, queue []*corev1.Pod, ends map[int]float64, placed int, chance float64) {
	t.Helper()
	sim, err := newSimulator(context.Background(), &c, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer sim.close()
	var free []string
	if placed < len(queue) {
		for name, s := range sim.decide(queue[placed], &Scenario{Cluster: c}).Nodes {
			if s.Code == "Success" {
				free = append(free, name)
			}
		}
	}
	if len(free) == 0 {
		ends[placed] += chance
	}
	for _, name := range free {
		pod := queue[placed].DeepCopy()
		pod.Spec.NodeName = name
		next := c
		next.Pods = append(append([]*corev1.Pod{}, c.Pods...), pod)
		bruteForce(t, next, queue, ends, placed+1, chance/float64(len(free)))
	}
}

func TestPlaceAgreesWithBruteForce(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute")
	}
	compared, apart := 0, 0
	for _, profile := range []string{"spread", "filters"} {
		scenarios := source{"verdict", profile, 11}
		for i := range 60 {
			line, err := scenarios.scenario(i)
			if err != nil {
				t.Fatal(err)
			}
			var scenario object
			if err := json.Unmarshal(line, &scenario); err != nil {
				t.Fatal(err)
			}
			nodes, _ := scenario["nodes"].(list)
			if len(nodes) > 4 {
				nodes = nodes[:4]
			}
			spec := scenario["pod"].(object)["spec"].(object)
			if strings.Contains(fmt.Sprint(spec["volumes"]), "persistentVolumeClaim") {
				continue // one claim for several pods
			}
			scenario["nodes"], scenario["template"], scenario["replicas"] = nodes, scenario["pod"], 3
			p := placementOf(t, scenario)
			var w World
			b, _ := json.Marshal(scenario)
			if err := kjson.UnmarshalCaseSensitivePreserveInts(b, &w); err != nil {
				t.Fatal(err)
			}
			queue, err := w.prepare(&Placement{})
			if err != nil {
				t.Fatal(err)
			}
			ends := map[int]float64{}
			bruteForce(t, w.Cluster, queue, ends, 0, 1)
			compared++
			if len(p.Ends) > 1 || p.Most > 0 && p.Most < 3 {
				apart++
			}
			if !p.Exact || len(ends) != len(p.Ends) {
				t.Errorf("%s-%d: got %v, want %v", profile, i, p.Ends, ends)
			}
			for n, chance := range ends {
				if math.Abs(p.Ends[n]-chance) > 1e-9 {
					t.Errorf("%s-%d: got %v, want %v", profile, i, p.Ends, ends)
				}
			}
		}
	}
	if compared < 80 || apart < 8 {
		t.Errorf("%d worlds, %d of them between nothing and everything", compared, apart)
	}
}
