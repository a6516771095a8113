// Command policies compiles admission policies with the API server's own CEL environments, and evaluates every
// expression with objects. It prints what the expressions cost.
//
// Input and output are JSON. A policy that some release refuses is an error.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	limits "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"
)

// Policy is a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy.
type Policy struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		MatchConditions []v1.MatchCondition `json:"matchConditions"`
		Variables       []v1.Variable       `json:"variables"`
		Validations     []v1.Validation     `json:"validations"`
		Mutations       []v1.Mutation       `json:"mutations"`
	} `json:"spec"`
}

// Input has policies, the release that each is compiled for, and objects to evaluate some of them with.
type Input struct {
	Policies []struct {
		Release  string `json:"release"`
		Policy   Policy `json:"policy"`
		Evaluate bool   `json:"evaluate"`
	} `json:"policies"`
	Objects   []json.RawMessage `json:"objects"`
	Namespace corev1.Namespace  `json:"namespace"`
}

// Cost is the highest cost of an expression, or of a policy's expressions together, and the limit of the API server.
type Cost struct {
	Policy string `json:"policy"`
	What   string `json:"what"`
	Object int    `json:"object"`
	Cost   int64  `json:"cost"`
	Limit  int64  `json:"limit"`
}

// source is an expression to compile, with the types that it may return.
type source struct {
	name, text string
	types      []*cel.Type
}

func (s source) GetName() string          { return strings.TrimPrefix(s.name, "variable ") }
func (s source) GetExpression() string    { return s.text }
func (s source) ReturnTypes() []*cel.Type { return s.types }

// compiled has the parts of a policy that share a budget. The API server evaluates variables when a part needs them.
type compiled struct {
	compiler                                     *plugin.CompositedCompiler
	conditions, validations, messages, mutations []cel.Program
	// costs are those of every evaluation, by expression.
	costs map[string]int64
}

// program records what each evaluation costs.
type program struct {
	cel.Program
	name  string
	costs map[string]int64
}

func (p program) ContextEval(ctx context.Context, input any) (ref.Val, *cel.EvalDetails, error) {
	value, details, err := p.Program.ContextEval(ctx, input)
	if details == nil || details.ActualCost() == nil {
		fail(fmt.Sprintf("%s has no cost: %v", p.name, err))
	}
	p.costs[p.name] = max(p.costs[p.name], int64(*details.ActualCost()))
	return value, details, err
}

// recorder compiles as the API server does, for new expressions: with libraries that the previous release has too.
type recorder struct {
	plugin.Compiler
	policy string
	costs  map[string]int64
}

func (r recorder) CompileCELExpression(given plugin.ExpressionAccessor, options plugin.OptionalVariableDeclarations, _ environment.Type) plugin.CompilationResult {
	name := given.(source).name
	result := r.Compiler.CompileCELExpression(given, options, environment.NewExpressions)
	if result.Error != nil {
		fail(fmt.Sprintf("%s, %s: %v", r.policy, name, result.Error))
	}
	result.Program = program{result.Program, name, r.costs}
	return result
}

func main() {
	var input Input
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		fail(err)
	}
	var objects []runtime.Object
	for _, raw := range input.Objects {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		if err != nil {
			fail(err)
		}
		objects = append(objects, object)
	}
	out := json.NewEncoder(os.Stdout)
	for _, each := range input.Policies {
		policy := compile(each.Policy, each.Release)
		if !each.Evaluate {
			continue
		}
		highest := map[string]Cost{}
		for at, object := range objects {
			for _, cost := range policy.evaluate(object, &input.Namespace) {
				cost.Policy, cost.Object = each.Policy.Name, at
				if cost.Cost >= highest[cost.What].Cost {
					highest[cost.What] = cost
				}
			}
		}
		for _, cost := range highest {
			if err := out.Encode(cost); err != nil {
				fail(err)
			}
		}
	}
}

func fail(err any) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func compile(policy Policy, release string) compiled {
	before := version.MustParse(release).SubtractMinor(1)
	compiler, err := plugin.NewCompositedCompiler(environment.MustBaseEnvSet(before))
	if err != nil {
		fail(err)
	}
	made := compiled{compiler: compiler, costs: map[string]int64{}}
	recording := recorder{compiler.Compiler, fmt.Sprintf("Kubernetes %s refuses %s", release, policy.Name), made.costs}
	compiler.Compiler = recording
	all, none := plugin.OptionalVariableDeclarations{HasAuthorizer: true}, plugin.OptionalVariableDeclarations{}
	for _, each := range policy.Spec.Variables {
		variable := source{"variable " + each.Name, each.Expression, []*cel.Type{cel.AnyType, cel.DynType}}
		compiler.CompileAndStoreVariable(variable, all, environment.NewExpressions)
	}
	compiled := func(kind, name, text string, options plugin.OptionalVariableDeclarations, result *cel.Type) cel.Program {
		given := source{kind + " " + name, text, []*cel.Type{result}}
		return recording.CompileCELExpression(given, options, environment.NewExpressions).Program
	}
	for _, each := range policy.Spec.MatchConditions {
		made.conditions = append(made.conditions, compiled("condition", each.Name, each.Expression, all, cel.BoolType))
	}
	for _, each := range policy.Spec.Validations {
		rule, _, _ := strings.Cut(each.Message, ":")
		made.validations = append(made.validations, compiled("validation", rule, each.Expression, all, cel.BoolType))
		if each.MessageExpression != "" {
			made.messages = append(made.messages, compiled("message", rule, each.MessageExpression, none, cel.StringType))
		}
	}
	patches := plugin.OptionalVariableDeclarations{HasAuthorizer: true, HasPatchTypes: true}
	for _, each := range policy.Spec.Mutations {
		text, result := each.JSONPatch.Expression, cel.ListType(cel.ObjectType("JSONPatch"))
		made.mutations = append(made.mutations, compiled("the", "patch", text, patches, result))
	}
	return made
}

// evaluate evaluates a policy as the validator and the dispatcher of mutations do. Mutations get only the objects that
// meet the conditions, because the conditions limit their size. A mutation must not fail.
func (c compiled) evaluate(object runtime.Object, namespace *corev1.Namespace) []Cost {
	clear(c.costs)
	matches := true
	evaluate := func(programs []cel.Program, isRequired bool) (sum int64) {
		ctx, activation := c.activation(object, namespace)
		for _, each := range programs {
			// A message may fail for an object: the API server then uses the message without an expression.
			value, details, err := each.ContextEval(ctx, activation)
			if err != nil && isRequired {
				fail(err)
			}
			matches = matches && value != types.False
			sum += int64(*details.ActualCost()) + ctx.GetAndResetCost()
		}
		return sum
	}
	found := []Cost{{What: "all conditions", Cost: evaluate(c.conditions, false), Limit: limits.RuntimeCELCostBudgetMatchConditions}}
	if len(c.mutations) == 0 {
		rest := evaluate(c.validations, false) + evaluate(c.messages, false)
		found = append(found, Cost{What: "all validations", Cost: rest, Limit: limits.RuntimeCELCostBudget})
	} else if matches {
		found = append(found, Cost{What: "all of the patch", Cost: evaluate(c.mutations, true), Limit: limits.RuntimeCELCostBudget})
	}
	for name, cost := range c.costs {
		found = append(found, Cost{What: name, Cost: cost, Limit: limits.PerCallLimit})
	}
	return found
}

func (c compiled) activation(object runtime.Object, namespace *corev1.Namespace) (plugin.CompositionContext, map[string]any) {
	ctx := c.compiler.CreateContext(context.Background())
	request := &admissionv1.AdmissionRequest{Operation: admissionv1.Update, Namespace: namespace.Name}
	request.UserInfo.Username = "jane"
	request.Kind = metav1.GroupVersionKind{Kind: object.GetObjectKind().GroupVersionKind().Kind}
	activation := map[string]any{
		"object":          common.SchemalessTypedToVal(object),
		"oldObject":       common.SchemalessTypedToVal(object),
		"request":         common.SchemalessTypedToVal(request),
		"namespaceObject": common.SchemalessTypedToVal(namespace),
	}
	activation["variables"] = ctx.Variables(activation)
	return ctx, activation
}
