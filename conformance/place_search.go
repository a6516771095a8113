//go:build !before137

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// search places the queued pods in every order, or in some.
//
// Two states are one if an automorphism of the cluster maps one to the other:
// nodes that nothing but their hostname tells apart may change places, and so
// may zones with the same nodes that nothing but their value tells apart.
type search struct {
	sim     *simulator
	world   *World
	pods    []*corev1.Pod // the queue
	classes []int         // of each queued pod
	sites   []site
	kinds   int // of pods

	placed  []placedPod
	assumed []*corev1.Pod   // pods of the search that are on their nodes, in the order that they got there
	left    []int           // queued pods of each class without a node
	counts  [][]int         // by site: queued pods of each class, then pods that are leaving
	old     [][]*corev1.Pod // pods that leave or have left, by site
	memo    map[string]*outcome
	limit   int
	over    bool
	best    *Placement // what the terminal states seen so far came to
	ends    [][]*corev1.Pod
	random  *rand.Rand
}

// site is a node with its places in the classes of nodes and of zones.
type site struct {
	name, zone        string
	nodeClass, zoneOf int
	zoneClass         string
}

type placedPod struct {
	pod  *corev1.Pod
	site int
}

// outcome is what a state leads to.
type outcome struct {
	fewest, most int
	ends         map[int]float64
}

// move is one pod of a class on one of the sites that are alike in this state.
type move struct {
	class, site int
	weight      float64
	gone        bool // a pod that is leaving is deleted there
}

func newSearch(sim *simulator, w *World, queue []*corev1.Pod) *search {
	s := &search{sim: sim, world: w, pods: queue, memo: map[string]*outcome{}, limit: w.States, best: &Placement{Fewest: len(queue) + 1, Most: -1}}
	s.sites = sitesOf(w, queue)
	s.classes, s.kinds = classesOf(w, queue)
	s.left = make([]int, s.kinds)
	for _, c := range s.classes {
		s.left[c]++
	}
	s.counts = make([][]int, len(s.sites))
	for i := range s.counts {
		s.counts[i] = make([]int, s.kinds+1)
	}
	s.old = make([][]*corev1.Pod, len(s.sites))
	s.random = rand.New(rand.NewPCG(w.Seed, 0x91ace))
	return s
}

func (s *search) run(p *Placement) error {
	if err := s.first(p); err != nil {
		return err
	}
	found, err := s.explore()
	if err != nil {
		return err
	}
	p.States, p.Exact = len(s.memo), !s.over
	if p.Exact {
		p.Ends = found.ends
	} else if s.world.Rollout == nil {
		p.Ends = map[int]float64{}
		for i := range s.world.Samples {
			n, err := s.sample(i)
			if err != nil {
				return err
			}
			p.Ends[n] += 1 / float64(s.world.Samples)
		}
	}
	p.Left = s.best.Left
	p.Fewest, p.Most, p.Witness, p.Message = s.best.Fewest, s.best.Most, s.best.Witness, s.best.Message
	return nil
}

// first notes where the first pod may go.
func (s *search) first(p *Placement) error {
	p.First = []string{}
	if len(s.pods) == 0 {
		return nil
	}
	names := s.names()
	free, err := s.sim.feasible(s.pods[0], names)
	for i, ok := range free {
		if ok {
			p.First = append(p.First, names[i])
		}
	}
	sort.Strings(p.First)
	return err
}

func (s *search) names() []string {
	names := make([]string, len(s.sites))
	for i, at := range s.sites {
		names[i] = at.name
	}
	return names
}

// explore returns what the state leads to; nothing once there are too many.
func (s *search) explore() (*outcome, error) {
	key := s.key()
	if found, ok := s.memo[key]; ok {
		return found, nil
	}
	if len(s.memo) >= s.limit {
		s.over = true
	}
	if s.over {
		return nil, nil
	}
	moves, err := s.moves()
	if err != nil {
		return nil, err
	}
	if len(moves) == 0 {
		s.end()
		n := len(s.placed)
		found := &outcome{n, n, map[int]float64{n: 1}}
		s.memo[key] = found
		return found, nil
	}
	sum := 0.0
	for _, m := range moves {
		sum += m.weight
	}
	found := &outcome{len(s.pods) + 1, -1, map[int]float64{}}
	s.memo[key] = found // counts from now on; no state leads back to itself
	for _, m := range moves {
		if err := s.assume(m); err != nil {
			return nil, err
		}
		next, err := s.explore()
		if undo := s.forget(m); undo != nil || err != nil || s.over {
			return nil, firstOf(err, undo)
		}
		found.fewest, found.most = min(found.fewest, next.fewest), max(found.most, next.most)
		for n, chance := range next.ends {
			found.ends[n] += chance * m.weight / sum
		}
	}
	return found, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// moves are the pods that may be placed next, and where; of sites that are
// alike in this state one stands for all.
func (s *search) moves() ([]move, error) {
	var found []move
	for _, class := range s.next() {
		var names []string
		var sites []int
		weights := map[string]float64{}
		var keys []string
		for i := range s.sites {
			key := s.siteKey(i)
			if weights[key]++; weights[key] == 1 {
				names, sites, keys = append(names, s.sites[i].name), append(sites, i), append(keys, key)
			}
		}
		free, err := s.sim.feasible(s.podOf(class), names)
		if err != nil {
			return nil, err
		}
		for i, ok := range free {
			if ok {
				found = append(found, move{class, sites[i], weights[keys[i]] * float64(s.left[class]), false})
			}
		}
	}
	return append(found, s.deletions()...), nil
}

// hold puts the pods that a rollout deletes on their nodes, so that they can be
// taken off again.
func (s *search) hold(leaving []*corev1.Pod) error {
	for _, p := range leaving {
		i := slices.IndexFunc(s.sites, func(at site) bool { return at.name == p.Spec.NodeName })
		s.old[i] = append(s.old[i], p)
		if err := s.forget(move{0, i, 1, true}); err != nil {
			return err
		}
	}
	return nil
}

// leaving is how many pods that a rollout deletes are still there.
func (s *search) leaving() int {
	sum := 0
	for _, counts := range s.counts {
		sum += counts[s.kinds]
	}
	return sum
}

// deletions are what the controller may delete next: any pod that is leaving, as
// long as enough pods are there.
func (s *search) deletions() []move {
	r := s.world.Rollout
	if r == nil && len(s.world.going) == 0 || r != nil && s.leaving()+len(s.placed)-1 < s.world.Replicas-r.Unavailable {
		return nil
	}
	var found []move
	seen := map[string]bool{}
	for i := range s.sites {
		if key := s.siteKey(i); s.counts[i][s.kinds] > 0 && !seen[key] {
			seen[key] = true
			found = append(found, move{0, i, 1, true})
		}
	}
	return found
}

// next are the classes of pods that the controller lets try now.
func (s *search) next() []int {
	if r := s.world.Rollout; r != nil && s.leaving()+len(s.placed) >= s.world.Replicas+r.Surge {
		return nil
	}
	if s.world.Ordered {
		if at := len(s.placed); at < len(s.pods) && !s.isHeld(s.pods[at]) {
			return s.classes[at : at+1]
		}
		return nil
	}
	var found []int
	for class, n := range s.left {
		if n > 0 && !s.isHeld(s.podOf(class)) {
			found = append(found, class)
		}
	}
	return found
}

// isHeld says whether a pod that is still terminating has the name.
func (s *search) isHeld(pod *corev1.Pod) bool {
	for i, old := range s.old {
		for _, p := range old[:s.counts[i][s.kinds]] {
			if p.Namespace == pod.Namespace && p.Name == pod.Name {
				return true
			}
		}
	}
	return false
}

// podOf is the first queued pod of a class that has no node.
func (s *search) podOf(class int) *corev1.Pod {
	skip := 0
	for _, p := range s.placed {
		if s.classOf(p.pod) == class {
			skip++
		}
	}
	for i, pod := range s.pods {
		if s.classes[i] != class {
			continue
		}
		if skip == 0 {
			return pod
		}
		skip--
	}
	return nil
}

func (s *search) classOf(pod *corev1.Pod) int {
	var i int
	_, _ = fmt.Sscanf(string(pod.UID), "queued-%d", &i)
	return s.classes[i]
}

func (s *search) assume(m move) error {
	if m.gone {
		s.counts[m.site][s.kinds]--
		return s.takeOff(s.old[m.site][s.counts[m.site][s.kinds]])
	}
	pod := s.podOf(m.class).DeepCopy()
	pod.Spec.NodeName = s.sites[m.site].name
	s.placed = append(s.placed, placedPod{pod, m.site})
	s.left[m.class]--
	s.counts[m.site][m.class]++
	return s.putOn(pod)
}

// forget undoes a move; of pods that were placed, the last.
func (s *search) forget(m move) error {
	if m.gone {
		pod := s.old[m.site][s.counts[m.site][s.kinds]]
		s.counts[m.site][s.kinds]++
		return s.putOn(pod)
	}
	last := s.placed[len(s.placed)-1]
	s.placed = s.placed[:len(s.placed)-1]
	class := s.classOf(last.pod)
	s.left[class]++
	s.counts[last.site][class]--
	return s.takeOff(last.pod)
}

func (s *search) putOn(pod *corev1.Pod) error {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return err
	}
	s.assumed = append(s.assumed, pod)
	return s.sim.snapshot.AssumePod(info)
}

// takeOff takes a pod off its node. A snapshot forgets pods in the reverse order
// only: those after this one are put on again.
func (s *search) takeOff(pod *corev1.Pod) error {
	at := slices.Index(s.assumed, pod)
	after := slices.Clone(s.assumed[at+1:])
	for _, last := range slices.Backward(s.assumed[at:]) {
		if err := s.sim.snapshot.ForgetPod(klog.FromContext(context.Background()), last); err != nil {
			return err
		}
	}
	s.assumed = s.assumed[:at]
	for _, next := range after {
		if err := s.putOn(next); err != nil {
			return err
		}
	}
	return nil
}

// end notes a terminal state.
func (s *search) end() {
	n := len(s.placed)
	if len(s.ends) < mostEnds {
		var pods []*corev1.Pod
		for _, p := range s.placed {
			pods = append(pods, p.pod)
		}
		s.ends = append(s.ends, pods)
	}
	s.best.Most, s.best.Left = max(s.best.Most, n), max(s.best.Left, s.leaving())
	if n >= s.best.Fewest {
		return
	}
	s.best.Fewest, s.best.Witness, s.best.Message = n, []string{}, ""
	for _, p := range s.placed {
		s.best.Witness = append(s.best.Witness, p.pod.Name+" on "+p.pod.Spec.NodeName)
	}
	if next := s.next(); len(next) > 0 {
		s.best.Message = s.sim.decide(s.podOf(next[0]), &Scenario{Cluster: s.world.Cluster}).Message
	}
}

// key names the state up to automorphism.
func (s *search) key() string {
	zones := map[int][]string{}
	class := map[int]string{}
	for i, at := range s.sites {
		zones[at.zoneOf] = append(zones[at.zoneOf], fmt.Sprint(at.nodeClass, s.counts[i]))
		class[at.zoneOf] = at.zoneClass
	}
	var all []string
	for zone, nodes := range zones {
		sort.Strings(nodes)
		all = append(all, class[zone]+strings.Join(nodes, ";"))
	}
	sort.Strings(all)
	return strings.Join(all, "\n")
}

// siteKey is the same for two sites only if an automorphism that keeps the
// state maps one to the other.
func (s *search) siteKey(i int) string {
	at := s.sites[i]
	var nodes []string
	for j, other := range s.sites {
		if other.zoneOf == at.zoneOf {
			nodes = append(nodes, fmt.Sprint(other.nodeClass, s.counts[j]))
		}
	}
	sort.Strings(nodes)
	return fmt.Sprint(at.zoneClass, nodes, at.nodeClass, s.counts[i])
}

// preference orders the feasible moves of a sampled order; the least is taken.
type preference func(s *search, m move) float64

// sample places the pods in one order and returns how many have a node then.
func (s *search) sample(number int) (int, error) {
	prefer := s.preference(number)
	for {
		var moves []move
		next := s.next()
		s.random.Shuffle(len(next), func(i, j int) { next = swapped(next, i, j) })
		for _, class := range next {
			free, err := s.sim.feasible(s.podOf(class), s.names())
			if err != nil {
				return 0, err
			}
			for i, ok := range free {
				if ok {
					moves = append(moves, move{class, i, 0, false})
				}
			}
			if len(moves) > 0 {
				break
			}
		}
		if len(moves) == 0 {
			break
		}
		s.random.Shuffle(len(moves), func(i, j int) { moves[i], moves[j] = moves[j], moves[i] })
		best := slices.MinFunc(moves, func(a, b move) int {
			switch x, y := prefer(s, a), prefer(s, b); {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
		if err := s.assume(best); err != nil {
			return 0, err
		}
	}
	s.end()
	n := len(s.placed)
	for len(s.placed) > 0 {
		if err := s.forget(move{}); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func swapped(list []int, i, j int) []int {
	out := slices.Clone(list)
	out[i], out[j] = out[j], out[i]
	return out
}

// preference is one of: random, packing and levelling nodes and zones, and
// filling nodes and zones in a random order.
func (s *search) preference(number int) preference {
	rank := s.random.Perm(len(s.sites))
	zoneRank := map[int]float64{}
	for i, at := range s.sites {
		zoneRank[at.zoneOf] = float64(rank[i])
	}
	onNode := func(s *search, m move) float64 { return float64(sum(s.counts[m.site])) }
	inZone := func(s *search, m move) float64 {
		n := 0
		for i, at := range s.sites {
			if at.zoneOf == s.sites[m.site].zoneOf {
				n += sum(s.counts[i])
			}
		}
		return float64(n)
	}
	return []preference{
		func(*search, move) float64 { return 0 },
		func(s *search, m move) float64 { return -onNode(s, m) },
		onNode,
		func(s *search, m move) float64 { return -inZone(s, m) },
		inZone,
		func(s *search, m move) float64 { return -1000*inZone(s, m) + onNode(s, m) },
		func(s *search, m move) float64 { return 1000*inZone(s, m) - onNode(s, m) },
		func(s *search, m move) float64 { return float64(rank[m.site]) },
		func(s *search, m move) float64 { return zoneRank[s.sites[m.site].zoneOf] },
		func(s *search, m move) float64 { return 1000*zoneRank[s.sites[m.site].zoneOf] + onNode(s, m) },
	}[number%10]
}

func sum(list []int) (n int) {
	for _, each := range list {
		n += each
	}
	return n
}

// sitesOf finds which nodes and which zones are alike.
func sitesOf(w *World, queue []*corev1.Pod) []site {
	named := texts(w, queue)
	byNode := map[string][]string{}
	for _, p := range append(w.assignedPods(), w.going...) {
		byNode[p.Spec.NodeName] = append(byNode[p.Spec.NodeName], podText(p))
	}
	csi := map[string]string{}
	for _, n := range w.CSINodes {
		csi[n.Name] = blanked(n.Spec, n.Name)
	}
	hosts := map[string]int{}
	for _, n := range w.Nodes {
		hosts[n.Labels[hostnameKey]]++
	}
	nodeClasses, zones := map[string]int{}, map[string]int{}
	sites := make([]site, len(w.Nodes))
	for i, n := range w.Nodes {
		labels := maps.Clone(n.Labels)
		host, zone := labels[hostnameKey], labels[zoneKey]
		told := quotedIn(named, n.Name)
		if _, has := labels[hostnameKey]; has && hosts[host] == 1 && !quotedIn(named, host) && !told {
			labels[hostnameKey] = "*"
		}
		if _, has := labels[zoneKey]; has {
			labels[zoneKey] = "*"
		}
		if told {
			labels["name"] = n.Name
		}
		pods := byNode[n.Name]
		sort.Strings(pods)
		text := fmt.Sprint(blanked(labels), blanked(n.Spec.Taints), n.Spec.Unschedulable, blanked(n.Status.Allocatable), n.DeletionTimestamp != nil, pods, csi[n.Name])
		zoneName := fmt.Sprint(zone, n.Labels[zoneKey] != "")
		if _, ok := zones[zoneName]; !ok {
			zones[zoneName] = len(zones)
		}
		if _, ok := nodeClasses[text]; !ok {
			nodeClasses[text] = len(nodeClasses)
		}
		sites[i] = site{name: n.Name, zone: zone, nodeClass: nodeClasses[text], zoneOf: zones[zoneName]}
	}
	for i, at := range sites {
		var inside []string
		for _, other := range sites {
			if other.zoneOf == at.zoneOf {
				inside = append(inside, fmt.Sprint(other.nodeClass))
			}
		}
		sort.Strings(inside)
		sites[i].zoneClass = strings.Join(inside, ",")
		if at.zone == "" || quotedIn(named, at.zone) {
			sites[i].zoneClass += " " + at.zone
		}
		sites[i].zoneClass += "|"
	}
	return sites
}

// podText is what other pods can see of an assigned pod, without its name and node.
func podText(p *corev1.Pod) string {
	spec := p.Spec.DeepCopy()
	spec.NodeName = ""
	return blanked([]any{p.Namespace, p.Labels, p.DeletionTimestamp != nil, spec, p.Status.Phase, p.Status.ContainerStatuses, p.Status.Resize})
}

// texts is everything in which a node or zone could be named.
func texts(w *World, queue []*corev1.Pod) string {
	var all strings.Builder
	for _, p := range queue {
		all.WriteString(blanked([]any{p.Labels, p.Annotations, p.Spec, p.Status.NominatedNodeName}))
	}
	for _, p := range slices.Concat(w.Pods, w.going) {
		all.WriteString(podText(p))
	}
	for _, list := range []any{w.PersistentVolumes, w.PersistentVolumeClaims, w.StorageClasses} {
		all.WriteString(blanked(list))
	}
	return all.String()
}

func quotedIn(text, word string) bool {
	quoted, _ := json.Marshal(word)
	return strings.Contains(text, string(quoted))
}

// classesOf finds which queued pods are alike: those that nothing but their
// name, their ordinal and the names of their claims tells apart.
func classesOf(w *World, queue []*corev1.Pod) ([]int, int) {
	selected := selectsOrdinals(w, queue)
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for _, c := range w.PersistentVolumeClaims {
		claims[c.Namespace+"/"+c.Name] = c
	}
	volumes := map[string]*corev1.PersistentVolume{}
	for _, v := range w.PersistentVolumes {
		volumes[v.Name] = v
	}
	known := map[string]int{}
	classes := make([]int, len(queue))
	for i, p := range queue {
		labels := maps.Clone(p.Labels)
		if !selected {
			delete(labels, podNameLabel)
			delete(labels, podIndexLabel)
		}
		spec := p.Spec.DeepCopy()
		if !selected {
			spec.Hostname = ""
		}
		var held []string
		for j, v := range spec.Volumes {
			if v.PersistentVolumeClaim == nil {
				continue
			}
			held = append(held, claimText(claims[p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName], volumes))
			spec.Volumes[j].PersistentVolumeClaim.ClaimName = "*"
		}
		text := fmt.Sprint(blanked([]any{p.Namespace, labels, spec, p.OwnerReferences}), held)
		if w.Ordered && len(held) == 0 {
			text = blanked([]any{p.Namespace, labels, spec})
		}
		if slices.ContainsFunc(w.going, func(other *corev1.Pod) bool { return other.Name == p.Name && other.Namespace == p.Namespace }) {
			text += p.Name // waits for its name
		}
		if _, ok := known[text]; !ok {
			known[text] = len(known)
		}
		classes[i] = known[text]
	}
	return classes, len(known)
}

const (
	podNameLabel  = "statefulset.kubernetes.io/pod-name"
	podIndexLabel = "apps.kubernetes.io/pod-index"
)

// selectsOrdinals says whether anything looks at the labels of single pods.
func selectsOrdinals(w *World, queue []*corev1.Pod) bool {
	var all strings.Builder
	for _, p := range queue {
		all.WriteString(blanked(p.Spec))
	}
	for _, p := range w.Pods {
		all.WriteString(blanked(p.Spec))
	}
	return quotedIn(all.String(), podNameLabel) || quotedIn(all.String(), podIndexLabel)
}

// claimText is what the scheduler's filters see of a claim besides its name.
func claimText(c *corev1.PersistentVolumeClaim, volumes map[string]*corev1.PersistentVolume) string {
	if c == nil {
		return "absent"
	}
	spec := c.Spec.DeepCopy()
	spec.VolumeName = ""
	parts := []any{spec, c.Annotations, c.Status.Phase, c.DeletionTimestamp != nil}
	if v := volumes[c.Spec.VolumeName]; v != nil {
		parts = append(parts, v.Labels, v.Spec.NodeAffinity, v.Spec.StorageClassName, v.Spec.AccessModes)
	} else if c.Spec.VolumeName != "" {
		parts = append(parts, c.Spec.VolumeName)
	}
	return blanked(parts)
}
