package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/featuregate"
	api "k8s.io/kubernetes/pkg/apis/core"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	schedulingv1defaults "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
)

// AdmitScenario is a pod as a client posts it, and what kube-apiserver's own
// admission plugins read, as clients post that.
type AdmitScenario struct {
	ID              string                        `json:"id"`
	Create          json.RawMessage               `json:"create"`
	LimitRanges     []*corev1.LimitRange          `json:"limitRanges,omitempty"`
	RuntimeClasses  []*nodev1.RuntimeClass        `json:"runtimeClasses,omitempty"`
	PriorityClasses []*schedulingv1.PriorityClass `json:"priorityClasses,omitempty"`
}

// AdmittedPod is what the scheduler would get, in fields that the plugins
// change or that follow from those. Amounts are in thousandths.
type AdmittedPod struct {
	ID string `json:"id"`
	// Refused says that a plugin refuses the pod; Text is its error where it
	// is the only one: what LimitRanger refuses comes in random order.
	Refused bool   `json:"refused"`
	Text    string `json:"text,omitempty"`
	// Invalid is what the API's own rules say of the pod after the plugins.
	Invalid           string                   `json:"invalid,omitempty"`
	Requests          map[string]amounts       `json:"requests,omitempty"`
	Limits            map[string]amounts       `json:"limits,omitempty"`
	PodRequests       amounts                  `json:"podRequests,omitempty"`
	Overhead          amounts                  `json:"overhead,omitempty"`
	NodeSelector      map[string]string        `json:"nodeSelector,omitempty"`
	Tolerations       []corev1.Toleration      `json:"tolerations,omitempty"`
	Priority          *int32                   `json:"priority,omitempty"`
	PriorityClassName string                   `json:"priorityClassName,omitempty"`
	PreemptionPolicy  *corev1.PreemptionPolicy `json:"preemptionPolicy,omitempty"`
}

// gated is a plugin that asks for feature gates; DefaultTolerationSeconds is one since 1.34.
type gated interface {
	InspectFeatureGates(featuregate.FeatureGate)
}

type amounts map[string]int64

func amountsOf(list corev1.ResourceList) amounts {
	out := amounts{}
	for name, quantity := range list {
		out[string(name)] = quantity.MilliValue()
	}
	return out
}

func runAdmit([]string) error {
	return mapLines(os.Stdin, os.Stdout, 0, func(line []byte) (any, error) { return admit(line) })
}

// plugins builds the admission plugins that change what the scheduler sees, in
// the API server's order, over fixed objects.
func (s *AdmitScenario) plugins() ([]admission.Interface, error) {
	client := fake.NewSimpleClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	for _, o := range s.LimitRanges {
		corev1defaults.SetObjectDefaults_LimitRange(o) // as it would be stored
		if err := factory.Core().V1().LimitRanges().Informer().GetStore().Add(o); err != nil {
			return nil, err
		}
	}
	for _, o := range s.RuntimeClasses {
		if err := factory.Node().V1().RuntimeClasses().Informer().GetStore().Add(o); err != nil {
			return nil, err
		}
	}
	for _, o := range s.PriorityClasses {
		schedulingv1defaults.SetObjectDefaults_PriorityClass(o)
		if err := factory.Scheduling().V1().PriorityClasses().Informer().GetStore().Add(o); err != nil {
			return nil, err
		}
	}
	ranger, err := limitranger.NewLimitRanger(nil)
	if err != nil {
		return nil, err
	}
	ranger.SetExternalKubeClientSet(client)
	ranger.SetExternalKubeInformerFactory(factory)
	priorities := priority.NewPlugin()
	priorities.SetExternalKubeClientSet(client)
	priorities.SetExternalKubeInformerFactory(factory)
	tolerations := defaulttolerationseconds.NewDefaultTolerationSeconds()
	if p, ok := any(tolerations).(gated); ok {
		p.InspectFeatureGates(feature.DefaultFeatureGate)
	}
	runtimes := runtimeclass.NewRuntimeClass()
	runtimes.SetExternalKubeClientSet(client)
	runtimes.SetExternalKubeInformerFactory(factory)
	return []admission.Interface{ranger, priorities, tolerations, runtimes}, nil
}

// admit follows a create request: decoding and defaulting, the plugins'
// changes, PrepareForCreate and validation, and what the plugins check last.
func admit(line []byte) (*AdmittedPod, error) {
	s := &AdmitScenario{}
	if err := json.Unmarshal(line, s); err != nil {
		return nil, err
	}
	obj, _, err := decodeCreate(s.Create, corev1.SchemeGroupVersion.WithKind("Pod"))
	if err != nil {
		return nil, err
	}
	pod, ok := obj.(*api.Pod)
	if !ok {
		return nil, fmt.Errorf("not a Pod: %T", obj)
	}
	plugins, err := s.plugins()
	if err != nil {
		return nil, err
	}
	ctx := requestContext(pod.Namespace, podKind)
	attributes := admission.NewAttributesRecord(pod, nil, api.Kind("Pod").WithVersion("v1"), pod.Namespace, pod.Name,
		api.Resource("pods").WithVersion("v1"), "", admission.Create, nil, false, nil)
	for _, p := range plugins {
		if m, ok := p.(admission.MutationInterface); ok {
			if err := m.Admit(ctx, attributes, nil); err != nil {
				return &AdmittedPod{ID: s.ID, Refused: true, Text: err.Error()}, nil
			}
		}
	}
	rest.FillObjectMetaSystemFields(pod)
	if err := rest.BeforeCreate(podregistry.Strategy, ctx, pod); err != nil {
		return &AdmittedPod{ID: s.ID, Invalid: err.Error()}, nil
	}
	for _, p := range plugins {
		if v, ok := p.(admission.ValidationInterface); ok {
			if err := v.Validate(ctx, attributes, nil); err != nil {
				return &AdmittedPod{ID: s.ID, Refused: true}, nil
			}
		}
	}
	return admitted(s.ID, pod)
}

func admitted(id string, internal *api.Pod) (*AdmittedPod, error) {
	pod := &corev1.Pod{}
	if err := corev1defaults.Convert_core_Pod_To_v1_Pod(internal, pod, nil); err != nil {
		return nil, err
	}
	spec := pod.Spec
	out := &AdmittedPod{ID: id, Requests: map[string]amounts{}, Limits: map[string]amounts{},
		Overhead: amountsOf(spec.Overhead), NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations,
		Priority: spec.Priority, PriorityClassName: spec.PriorityClassName, PreemptionPolicy: spec.PreemptionPolicy}
	for _, c := range append(append([]corev1.Container{}, spec.InitContainers...), spec.Containers...) {
		out.Requests[c.Name], out.Limits[c.Name] = amountsOf(c.Resources.Requests), amountsOf(c.Resources.Limits)
	}
	if spec.Resources != nil {
		out.PodRequests = amountsOf(spec.Resources.Requests)
	}
	return out, nil
}

// admitScenario draws a pod and what admission plugins know.
func admitScenario(g gen) object {
	pod := g.incoming(g.apps()[0])
	spec := specOf(pod)
	g.resources(spec)
	delete(spec, "overhead")
	delete(spec, "runtimeClassName")
	if g.chance(0.3) {
		for _, c := range spec["containers"].(list) {
			if g.chance(0.6) {
				delete(c.(object), "resources")
			}
		}
	}
	if g.chance(0.5) {
		spec["tolerations"] = g.tolerations()
	}
	if g.chance(0.4) {
		spec["nodeSelector"] = object{"pool": pick(g, "general", "spot"), "disktype": "ssd"}
	}
	s := object{"create": pod}
	if g.chance(0.7) {
		s["limitRanges"] = g.limitRanges()
	}
	g.runtime(s, spec)
	g.priority(s, spec)
	return s
}

func (g gen) amounts(values map[string][]string, chance float64) object {
	out := object{}
	for _, name := range []string{"cpu", "memory", "ephemeral-storage"} {
		if g.chance(chance) {
			out[name] = pick(g, values[name]...)
		}
	}
	return out
}

// limitRanges draws one range, or two that give different resources.
func (g gen) limitRanges() list {
	small := map[string][]string{"cpu": {"10m", "50m", "0.1"}, "memory": {"16Mi", "64M"}, "ephemeral-storage": {"1Mi", "100k"}}
	usual := map[string][]string{"cpu": {"100m", "0.25", "500m"}, "memory": {"128Mi", "256M", "1e8"}, "ephemeral-storage": {"1Gi", "500M"}}
	large := map[string][]string{"cpu": {"2", "4", "2500m"}, "memory": {"4Gi", "2G"}, "ephemeral-storage": {"20Gi", "6Gi"}}
	item := object{"type": "Container"}
	if g.chance(0.6) {
		item["default"] = g.amounts(large, 0.5)
	}
	if g.chance(0.6) {
		item["defaultRequest"] = g.amounts(usual, 0.5)
	}
	if g.chance(0.3) {
		item["min"] = g.amounts(small, 0.5)
	}
	if g.chance(0.3) {
		item["max"] = g.amounts(large, 0.5)
	}
	if g.chance(0.1) {
		item["maxLimitRequestRatio"] = object{"cpu": pick(g, "2", "20", "1.5")}
	}
	limits := list{item}
	if g.chance(0.2) {
		limits = append(limits, object{"type": "Pod", "max": object{"cpu": pick(g, "2", "8"), "memory": "8Gi"}})
	}
	if g.chance(0.1) {
		limits = append(limits, object{"type": "Pod", "min": object{"cpu": pick(g, "100m", "3")}})
	}
	if g.chance(0.1) {
		limits = append(limits, object{"type": "Container", "default": object{"example.com/gpu": "1"}})
	}
	ranges := list{object{"metadata": object{"name": "one", "namespace": podNamespaces[0]}, "spec": object{"limits": limits}}}
	if g.chance(0.2) {
		ranges = append(ranges, object{"metadata": object{"name": "two", "namespace": podNamespaces[0]},
			"spec": object{"limits": list{object{"type": "Container", "default": object{"hugepages-2Mi": "4Mi"}}}}})
	}
	if g.chance(0.2) {
		ranges = append(ranges, object{"metadata": object{"name": "other", "namespace": "elsewhere"},
			"spec": object{"limits": list{object{"type": "Container", "default": object{"cpu": "7"}}}}})
	}
	return ranges
}

func (g gen) runtime(s, spec object) {
	if !g.chance(0.5) {
		return
	}
	class := object{"metadata": object{"name": "sandboxed"}, "handler": "kata"}
	overhead := object{"cpu": pick(g, "250m", "0.1"), "memory": "120Mi"}
	if g.chance(0.7) {
		class["overhead"] = object{"podFixed": overhead}
	}
	if g.chance(0.6) {
		scheduling := object{}
		if g.chance(0.7) {
			scheduling["nodeSelector"] = pick(g, object{"runtime": "kata"}, object{"pool": "spot"}, object{"pool": "spot", "runtime": "kata"})
		}
		if g.chance(0.7) {
			scheduling["tolerations"] = g.tolerations()
		}
		class["scheduling"] = scheduling
	}
	s["runtimeClasses"] = list{class}
	spec["runtimeClassName"] = weighted(g, choice[string]{95, "sandboxed"}, choice[string]{5, "gone"})
	if g.chance(0.2) {
		spec["overhead"] = pick[any](g, overhead, object{"cpu": "1"})
	}
}

func (g gen) priority(s, spec object) {
	classes := list{object{"metadata": object{"name": "high"}, "value": 1000}, object{"metadata": object{"name": "polite"}, "value": 500, "preemptionPolicy": "Never"}}
	if g.chance(0.4) {
		classes = append(classes, object{"metadata": object{"name": "usual"}, "value": pick(g, 10, -5), "globalDefault": true, "preemptionPolicy": pick(g, "Never", "PreemptLowerPriority")})
	}
	if g.chance(0.1) {
		classes = append(classes, object{"metadata": object{"name": "rare"}, "value": 3, "globalDefault": true})
	}
	if g.chance(0.95) {
		s["priorityClasses"] = classes
	}
	if g.chance(0.5) {
		spec["priorityClassName"] = pick(g, "high", "high", "high", "polite", "polite", "polite", "gone")
	}
	if g.chance(0.08) {
		spec["priority"] = pick(g, 0, 1000, 7)
	}
	if g.chance(0.05) {
		spec["preemptionPolicy"] = pick(g, "Never", "PreemptLowerPriority")
	}
}
