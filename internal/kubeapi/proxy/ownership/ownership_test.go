package ownership_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy/ownership"
)

const (
	jsonType      = "application/json"
	applyType     = "application/apply-patch+yaml"
	mergeType     = "application/merge-patch+json"
	strategicType = "application/strategic-merge-patch+json"
	jsonPatchType = "application/json-patch+json"

	ours     = `{"apiVersion":"g.io/v1","kind":"K","name":"cr","uid":"u1"}`
	oursOld  = `{"apiVersion":"g.io/v1beta1","kind":"K","name":"cr","uid":"u1"}`
	oursCtrl = `{"apiVersion":"g.io/v1","kind":"K","name":"cr","uid":"u1","controller":true,"blockOwnerDeletion":true}`
	// oursOldCtrl has flags that the role set.
	oursOldCtrl = `{"apiVersion":"g.io/v1beta1","kind":"K","name":"cr","uid":"u1","controller":true,"blockOwnerDeletion":true}`
	before      = `{"apiVersion":"g.io/v1beta1","kind":"K","name":"cr","uid":"u0"}`
	others      = `{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"x","uid":"u2","controller":true}`
	notes       = `"operator-sdk/primary-resource":"ns/cr","operator-sdk/primary-resource-type":"K.g.io"`
	keep        = `"helm.sh/resource-policy":"keep"`
	notOurs     = `"operator-sdk/primary-resource":"ns/another","operator-sdk/primary-resource-type":"K.g.io"`
)

func target(ownerNamespace, namespace string) ownership.Target {
	return ownership.Target{
		Owner:     access.Owner{GVK: schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "K"}, Namespace: ownerNamespace, Name: "cr", UID: "u1"},
		Namespace: namespace,
		Name:      "c",
	}
}

func inNamespace() ownership.Target      { return target("ns", "ns") }
func elsewhere() ownership.Target        { return target("ns", "other") }
func clusterScoped() ownership.Target    { return target("ns", "") }
func ofClusterScoped() ownership.Target  { return target("", "any") }
func twoClusterScoped() ownership.Target { return target("", "") }

func ofTheCoreGroup() ownership.Target {
	core := inNamespace()
	core.Owner.GVK = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	return core
}

// same is a body that is passed on as it came.
const same = "the same"

func TestCarry(t *testing.T) {
	for name, test := range map[string]struct {
		target      ownership.Target
		verb        string
		contentType string
		body        string
		live        string // "" where there is no such object
		want        string
	}{
		// POST
		"what is created gets a reference": {
			inNamespace(), "create", jsonType, `{"metadata":{"name":"c"}}`, "",
			`{"metadata":{"name":"c","ownerReferences":[` + ours + `]}}`,
		},
		"an owner of the core group has a version alone": {
			ofTheCoreGroup(), "create", jsonType, `{"metadata":{}}`, "", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"cr","uid":"u1"}]}}`,
		},
		"what is created without metadata gets it": {
			inNamespace(), "create", "", `{"data":{}}`, "", `{"data":{},"metadata":{"ownerReferences":[` + ours + `]}}`,
		},
		"what a cluster-scoped owner creates anywhere gets a reference": {
			ofClusterScoped(), "create", jsonType, `{"metadata":{}}`, "", `{"metadata":{"ownerReferences":[` + ours + `]}}`,
		},
		"what a cluster-scoped owner creates without a namespace gets a reference": {
			twoClusterScoped(), "create", jsonType, `{"metadata":{}}`, "", `{"metadata":{"ownerReferences":[` + ours + `]}}`,
		},
		"in another namespace a reference would delete the child, so it gets annotations": {
			elsewhere(), "create", jsonType, `{"metadata":{"annotations":{"a":"b"}}}`, "", `{"metadata":{"annotations":{"a":"b",` + notes + `}}}`,
		},
		"a cluster-scoped child of a namespaced owner gets annotations": {
			clusterScoped(), "create", jsonType, `{"metadata":{"annotations":null}}`, "", `{"metadata":{"annotations":{` + notes + `}}}`,
		},
		"YAML is read and goes out as JSON": {
			inNamespace(), "create", "application/yaml", "metadata:\n  name: c\n", "",
			`{"metadata":{"name":"c","ownerReferences":[` + ours + `]}}`,
		},
		"what a chart keeps gets no reference":      {inNamespace(), "create", jsonType, `{"metadata":{"annotations":{"helm.sh/resource-policy":" Keep"}}}`, "", same},
		"nor annotations elsewhere":                 {elsewhere(), "create", jsonType, `{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`, "", same},
		"what is applied to be kept loses its link": {inNamespace(), "patch", "application/apply-patch+yaml", `{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, same},
		"another policy keeps nothing": {
			inNamespace(), "create", jsonType, `{"metadata":{"annotations":{"helm.sh/resource-policy":"other"}}}`, "",
			`{"metadata":{"annotations":{"helm.sh/resource-policy":"other"},"ownerReferences":[` + ours + `]}}`,
		},
		"generateName is no obstacle": {
			inNamespace(), "create", jsonType, `{"metadata":{"generateName":"c-"}}`, "",
			`{"metadata":{"generateName":"c-","ownerReferences":[` + ours + `]}}`,
		},
		"a reference of the role is not doubled":           {inNamespace(), "create", jsonType, `{"metadata":{"ownerReferences":[` + oursCtrl + `]}}`, "", same},
		"one by another version of the kind is renewed":    {inNamespace(), "create", jsonType, `{"metadata":{"ownerReferences":[` + oursOld + `]}}`, "", `{"metadata":{"ownerReferences":[` + ours + `]}}`},
		"annotations that are right already stay":          {elsewhere(), "create", jsonType, `{"metadata":{"annotations":{` + notes + `}}}`, "", same},
		"another owner's reference stays beside ours":      {inNamespace(), "create", jsonType, `{"metadata":{"ownerReferences":[` + others + `]}}`, "", `{"metadata":{"ownerReferences":[` + others + `,` + ours + `]}}`},
		"a new child with another's annotations gets ours": {elsewhere(), "create", jsonType, `{"metadata":{"annotations":{` + notOurs + `}}}`, "", `{"metadata":{"annotations":{` + notes + `}}}`},
		"a reference of the role that would delete the child becomes annotations": {
			elsewhere(), "create", jsonType, `{"metadata":{"ownerReferences":[` + ours + `,` + others + `]}}`, "",
			`{"metadata":{"ownerReferences":[` + others + `],"annotations":{` + notes + `}}}`,
		},
		"numbers stay as they were written": {
			inNamespace(), "create", jsonType, `{"big":12345678901234567890,"float":1.50,"metadata":{}}`, "",
			`{"big":12345678901234567890,"float":1.50,"metadata":{"ownerReferences":[` + ours + `]}}`,
		},
		"the owner itself, created again, is not its own child": {
			target("ns", "ns"), "create", jsonType, `{"apiVersion":"g.io/v1beta1","kind":"K","metadata":{"name":"c"}}`, "",
			`{"apiVersion":"g.io/v1beta1","kind":"K","metadata":{"name":"c","ownerReferences":[` + ours + `]}}`,
		},

		// PUT
		"a replacement renews the reference": {
			inNamespace(), "update", jsonType, `{"metadata":{"name":"c"}}`, `{"metadata":{"ownerReferences":[` + others + `,` + oursOld + `]}}`,
			`{"metadata":{"name":"c","ownerReferences":[` + ours + `]}}`,
		},
		"a replacement keeps what the role wrote into the reference": {
			inNamespace(), "update", jsonType, `{"metadata":{"ownerReferences":[` + others + `]}}`, `{"metadata":{"ownerReferences":[` + oursCtrl + `]}}`,
			`{"metadata":{"ownerReferences":[` + others + `,` + oursCtrl + `]}}`,
		},
		"a replacement keeps the annotations": {
			elsewhere(), "update", jsonType, `{"metadata":{"annotations":{"a":"b"}}}`, `{"metadata":{"annotations":{` + notes + `}}}`,
			`{"metadata":{"annotations":{"a":"b",` + notes + `}}}`,
		},
		"a replacement that brings the reference along passes": {inNamespace(), "update", jsonType, `{"metadata":{"ownerReferences":[` + ours + `]}}`, `{"metadata":{}}`, same},
		"an object without the link is not adopted by PUT":     {inNamespace(), "update", jsonType, `{"metadata":{"name":"c"}}`, `{"metadata":{}}`, same},
		"nor elsewhere":                                             {elsewhere(), "update", jsonType, `{"metadata":{"name":"c"}}`, `{"metadata":{}}`, same},
		"nor where it is another CR's":                              {elsewhere(), "update", jsonType, `{"metadata":{"name":"c"}}`, `{"metadata":{"annotations":{` + notOurs + `}}}`, same},
		"another controller's child stays its own":                  {inNamespace(), "update", jsonType, `{"metadata":{"name":"c"}}`, `{"metadata":{"ownerReferences":[` + others + `]}}`, same},
		"a replacement that creates the object links it":            {inNamespace(), "update", jsonType, `{"metadata":{"name":"c"}}`, "", `{"metadata":{"name":"c","ownerReferences":[` + ours + `]}}`},
		"annotations are kept in the owner's own namespace as well": {inNamespace(), "update", jsonType, `{"metadata":{}}`, `{"metadata":{"annotations":{` + notes + `}}}`, `{"metadata":{"annotations":{` + notes + `}}}`},

		// server-side apply
		"an apply that makes the object carries the reference": {
			inNamespace(), "patch", applyType, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","ownerReferences":[` + ours + `]}}`,
		},
		"every further apply repeats it, renewed": {
			inNamespace(), "patch", applyType, `{"metadata":{"name":"c"}}`, `{"metadata":{"ownerReferences":[` + oursOld + `]}}`,
			`{"metadata":{"name":"c","ownerReferences":[` + ours + `]}}`,
		},
		"an apply leaves alone what was there":      {inNamespace(), "patch", applyType, "metadata: {name: c}\n", `{"metadata":{"ownerReferences":[` + others + `]}}`, same},
		"an apply with the role's reference passes": {inNamespace(), "patch", applyType, `{"metadata":{"ownerReferences":[` + ours + `]}}`, `{"metadata":{}}`, same},
		"an apply elsewhere repeats the annotations": {
			elsewhere(), "patch", applyType, `{"metadata":{"name":"c"}}`, `{"metadata":{"annotations":{` + notes + `,"x":"y"}}}`,
			`{"metadata":{"name":"c","annotations":{` + notes + `}}}`,
		},

		// the child of a CR of the same name that is gone, which the garbage collector is about to delete
		"an apply saves it": {
			inNamespace(), "patch", applyType, `{"metadata":{"name":"c"}}`, `{"metadata":{"ownerReferences":[` + before + `]}}`,
			`{"metadata":{"name":"c","ownerReferences":[` + ours + `]}}`,
		},
		"a replacement takes it over": {
			inNamespace(), "update", jsonType, `{"metadata":{"name":"c"}}`, `{"metadata":{"ownerReferences":[` + before + `,` + others + `]}}`,
			`{"metadata":{"name":"c","ownerReferences":[` + ours + `]}}`,
		},
		"a patch that leaves it nobody's takes it over": {
			inNamespace(), "patch", mergeType, `{"metadata":{"ownerReferences":null}}`, `{"metadata":{"ownerReferences":[` + before + `]}}`,
			`{"metadata":{"ownerReferences":[` + ours + `]}}`,
		},
		"the predecessor's own late write takes nothing away": {
			inNamespace(), "patch", applyType, `{"metadata":{"name":"c"}}`, `{"metadata":{"ownerReferences":[` + ours + `,` + before + `]}}`,
			`{"metadata":{"name":"c","ownerReferences":[` + ours + `]}}`,
		},
		"of another kind, the same name is a chance": {
			inNamespace(), "patch", applyType, `{"metadata":{"name":"c"}}`, `{"metadata":{"ownerReferences":[` + strings.Replace(before, "g.io", "h.io", 1) + `]}}`, same,
		},
		"where no reference is right, nothing is done": {
			elsewhere(), "patch", applyType, `{"metadata":{"name":"c"}}`, `{"metadata":{"ownerReferences":[` + before + `]}}`, same,
		},

		// merge patches
		"a patch of other things passes":                     {inNamespace(), "patch", mergeType, `{"data":{"a":null},"metadata":{"labels":null,"annotations":{"a":null}}}`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, same},
		"an annotation more takes nothing":                   {elsewhere(), "patch", strategicType, `{"metadata":{"annotations":{"a":"b"}}}`, `{"metadata":{"annotations":{` + notes + `}}}`, same},
		"a merge patch may take references of others":        {inNamespace(), "patch", mergeType, `{"metadata":{"ownerReferences":[` + ours + `]}}`, `{"metadata":{"ownerReferences":[` + ours + `,` + others + `]}}`, same},
		"a merge patch of what was there adopts nothing":     {inNamespace(), "patch", mergeType, `{"metadata":{"ownerReferences":null}}`, `{"metadata":{"ownerReferences":[` + others + `]}}`, same},
		"a patch of what is not there passes":                {inNamespace(), "patch", mergeType, `{"metadata":{"ownerReferences":null}}`, "", same},
		"a patch that does not fit is the API server's":      {inNamespace(), "patch", strategicType, `{"metadata":{"ownerReferences":[{"name":"no uid"}]}}`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, same},
		"a merge patch that empties the references keeps it": {inNamespace(), "patch", mergeType, `{"data":{},"metadata":{"ownerReferences":[]}}`, `{"metadata":{"ownerReferences":[` + oursOld + `,` + others + `]}}`, `{"data":{},"metadata":{"ownerReferences":[` + ours + `]}}`},
		"a merge patch that removes them keeps it":           {inNamespace(), "patch", mergeType, `{"metadata":{"ownerReferences":null}}`, `{"metadata":{"ownerReferences":[` + oursOld + `,` + others + `]}}`, `{"metadata":{"ownerReferences":[` + ours + `]}}`},
		"a merge patch that removes all annotations keeps ours": {
			elsewhere(), "patch", mergeType, `{"metadata":{"annotations":null}}`, `{"metadata":{"annotations":{"a":"b",` + notes + `}}}`,
			`{"metadata":{"annotations":{"a":null}}}`,
		},
		"a merge patch that removes one of ours keeps it": {
			elsewhere(), "patch", mergeType, `{"metadata":{"labels":{"l":"m"},"annotations":{"operator-sdk/primary-resource":null}}}`, `{"metadata":{"annotations":{` + notes + `}}}`,
			`{"metadata":{"labels":{"l":"m"}}}`,
		},
		"a merge patch that gives it to another keeps it": {
			elsewhere(), "patch", mergeType, `{"metadata":{"annotations":{` + notOurs + `,"a":"b"}}}`, `{"metadata":{"annotations":{` + notes + `}}}`,
			`{"metadata":{"annotations":{"a":"b"}}}`,
		},
		"what a patch makes its success depend on stays": {
			inNamespace(), "patch", mergeType, `{"metadata":{"ownerReferences":null,"resourceVersion":"7","uid":"c1"}}`, `{"metadata":{"uid":"c1","resourceVersion":"7","ownerReferences":[` + ours + `,` + others + `]}}`,
			`{"metadata":{"uid":"c1","resourceVersion":"7","ownerReferences":[` + ours + `]}}`,
		},
		"a merge patch with a reference that would delete the object gives annotations": {
			elsewhere(), "patch", mergeType, `{"metadata":{"ownerReferences":[` + ours + `]}}`, `{"metadata":{}}`, `{"metadata":{"annotations":{` + notes + `}}}`,
		},

		// strategic merge patches
		"a strategic patch merges references by uid":          {inNamespace(), "patch", strategicType, `{"metadata":{"ownerReferences":[` + others + `]}}`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, same},
		"a directive that deletes ours is taken out":          {inNamespace(), "patch", strategicType, `{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"u1"}]}}`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, `{"metadata":{}}`},
		"a directive that deletes another's reference passes": {inNamespace(), "patch", strategicType, `{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"u2"}]}}`, `{"metadata":{"ownerReferences":[` + ours + `,` + others + `]}}`, same},
		"a directive that replaces the references keeps ours": {
			inNamespace(), "patch", strategicType, `{"metadata":{"ownerReferences":[{"$patch":"replace"}]}}`, `{"metadata":{"ownerReferences":[` + ours + `,` + others + `]}}`,
			`{"metadata":{"$setElementOrder/ownerReferences":[{"uid":"u1"}],"ownerReferences":[{"$patch":"delete","uid":"u2"}]}}`,
		},
		"null takes the references of others only": {
			inNamespace(), "patch", strategicType, `{"metadata":{"ownerReferences":null}}`, `{"metadata":{"ownerReferences":[` + ours + `,` + others + `]}}`,
			`{"metadata":{"$setElementOrder/ownerReferences":[{"uid":"u1"}],"ownerReferences":[{"$patch":"delete","uid":"u2"}]}}`,
		},
		"a directive that replaces the annotations keeps ours": {
			elsewhere(), "patch", strategicType, `{"metadata":{"annotations":{"$patch":"replace","c":"d"}}}`, `{"metadata":{"annotations":{"a":"b",` + notes + `}}}`,
			`{"metadata":{"annotations":{"a":null,"c":"d"}}}`,
		},
		"keys to retain hold ours as well": {
			inNamespace(), "patch", strategicType, `{"metadata":{"$retainKeys":["name"],"name":"c"}}`, `{"metadata":{"name":"c","labels":{"l":"m"},"ownerReferences":[` + ours + `]}}`,
			`{"metadata":{"labels":null}}`,
		},
		"metadata that is replaced keeps ours": {
			inNamespace(), "patch", strategicType, `{"metadata":{"$patch":"replace","name":"c"}}`, `{"metadata":{"name":"c","labels":{"l":"m"},"ownerReferences":[` + ours + `]}}`,
			`{"metadata":{"labels":null}}`,
		},
		"an object that is replaced keeps ours": {
			inNamespace(), "patch", strategicType, `{"$patch":"replace","metadata":{"name":"c"},"data":{}}`, `{"metadata":{"name":"c","ownerReferences":[` + oursOld + `]}}`,
			`{"$patch":"replace","metadata":{"name":"c","ownerReferences":[` + ours + `]},"data":{}}`,
		},

		// JSON patches
		"operations on other things pass": {inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"/metadata/labels"},{"op":"test","path":"/metadata/ownerReferences/0/uid","value":"u1"}]`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, same},
		"removing the references keeps ours": {
			inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"/metadata/ownerReferences"}]`, `{"metadata":{"ownerReferences":[` + oursOld + `,` + others + `]}}`,
			`[{"op":"remove","path":"/metadata/ownerReferences"},{"op":"add","path":"/metadata/ownerReferences","value":[` + ours + `]}]`,
		},
		"removing ours by its place keeps it": {
			inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"/metadata/ownerReferences/0"}]`, `{"metadata":{"ownerReferences":[` + oursOld + `,` + others + `]}}`,
			`[{"op":"remove","path":"/metadata/ownerReferences/0"},{"op":"add","path":"/metadata/ownerReferences/-","value":` + ours + `}]`,
		},
		"removing another's by its place passes": {inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"/metadata/ownerReferences/1"}]`, `{"metadata":{"ownerReferences":[` + ours + `,` + others + `]}}`, same},
		"moving ours away keeps it": {
			elsewhere(), "patch", jsonPatchType, `[{"op":"move","from":"/metadata/annotations/operator-sdk~1primary-resource","path":"/data/a"}]`, `{"data":{},"metadata":{"annotations":{` + notes + `}}}`,
			`[{"op":"move","from":"/metadata/annotations/operator-sdk~1primary-resource","path":"/data/a"},{"op":"add","path":"/metadata/annotations/operator-sdk~1primary-resource","value":"ns/cr"}]`,
		},
		"removing all annotations keeps ours": {
			elsewhere(), "patch", jsonPatchType, `[{"op":"remove","path":"/metadata/annotations"}]`, `{"metadata":{"annotations":{` + notes + `}}}`,
			`[{"op":"remove","path":"/metadata/annotations"},{"op":"add","path":"/metadata/annotations","value":{` + notes + `}}]`,
		},
		"copying another object's annotations over ours keeps them": {
			elsewhere(), "patch", jsonPatchType, `[{"op":"copy","from":"/spec/notes","path":"/metadata/annotations"}]`, `{"spec":{"notes":{"a":"b",` + notes + `,"operator-sdk/primary-resource":"x/y"}},"metadata":{"annotations":{` + notes + `}}}`,
			`[{"op":"copy","from":"/spec/notes","path":"/metadata/annotations"},{"op":"add","path":"/metadata/annotations/operator-sdk~1primary-resource","value":"ns/cr"}]`,
		},
		"a reference that would delete the object is taken out again": {
			elsewhere(), "patch", jsonPatchType, `[{"op":"add","path":"/metadata/ownerReferences","value":[` + ours + `]}]`, `{"metadata":{}}`,
			`[{"op":"add","path":"/metadata/ownerReferences","value":[` + ours + `]},{"op":"remove","path":"/metadata/ownerReferences"},{"op":"add","path":"/metadata/annotations","value":{` + notes + `}}]`,
		},
		"what stands before a pointer's first slash hides nothing": {
			inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"x/metadata/ownerReferences"}]`, `{"metadata":{"ownerReferences":[` + ours + `]}}`,
			`[{"op":"remove","path":"x/metadata/ownerReferences"},{"op":"add","path":"/metadata/ownerReferences","value":[` + ours + `]}]`,
		},
		"an escape hides nothing": {
			inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"/m\u0065tadata/ownerReferences"}]`, `{"metadata":{"ownerReferences":[` + ours + `]}}`,
			`[{"op":"remove","path":"/m\u0065tadata/ownerReferences"},{"op":"add","path":"/metadata/ownerReferences","value":[` + ours + `]}]`,
		},
		"what is copied from a missing member is nothing, and takes ours away": {
			inNamespace(), "patch", jsonPatchType, `[{"op":"copy","from":"/metadata/labels","path":"/metadata/ownerReferences"}]`, `{"metadata":{"ownerReferences":[` + ours + `]}}`,
			`[{"op":"copy","from":"/metadata/labels","path":"/metadata/ownerReferences"},{"op":"add","path":"/metadata/ownerReferences","value":[` + ours + `]}]`,
		},
		"a missing member may be replaced before ours are removed": {
			inNamespace(), "patch", jsonPatchType, `[{"op":"replace","path":"/spec","value":{}},{"op":"remove","path":"/metadata/ownerReferences"}]`, `{"metadata":{"ownerReferences":[` + ours + `]}}`,
			`[{"op":"replace","path":"/spec","value":{}},{"op":"remove","path":"/metadata/ownerReferences"},{"op":"add","path":"/metadata/ownerReferences","value":[` + ours + `]}]`,
		},
		"nothing copied over all annotations takes ours away": {
			elsewhere(), "patch", jsonPatchType, `[{"op":"copy","from":"/none","path":"/metadata/annotations"}]`, `{"metadata":{"annotations":{` + notes + `}}}`,
			`[{"op":"copy","from":"/none","path":"/metadata/annotations"},{"op":"add","path":"/metadata/annotations","value":{` + notes + `}}]`,
		},
		"more operations than the API server takes are its to refuse": {
			inNamespace(), "patch", jsonPatchType, `[` + strings.Repeat(`{"op":"test","path":"/kind","value":"x"},`, 10000) + `{"op":"remove","path":"/metadata/ownerReferences"}]`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, same,
		},
		"copies that grow beyond what the API server takes are its to refuse": {
			inNamespace(), "patch", jsonPatchType, `[` + strings.Repeat(`{"op":"copy","from":"/spec","path":"/spec/-"},`, 18) + `{"op":"remove","path":"/metadata/ownerReferences"}]`, `{"metadata":{"ownerReferences":[` + ours + `]},"spec":["0123456789abcdef"]}`, same,
		},
		"an operation that the API server's library panics at is the API server's": {
			inNamespace(), "patch", jsonPatchType, `[{"op":"replace","path":""}]`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, same,
		},
		"what does not apply is the API server's": {inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"/metadata/ownerReferences/7"}]`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, same},
		"a test that fails is the API server's": {
			inNamespace(), "patch", jsonPatchType, `[{"op":"test","path":"/data","value":1},{"op":"remove","path":"/metadata/ownerReferences"}]`, `{"metadata":{"ownerReferences":[` + ours + `]}}`,
			`[{"op":"test","path":"/data","value":1},{"op":"remove","path":"/metadata/ownerReferences"},{"op":"add","path":"/metadata/ownerReferences","value":[` + ours + `]}]`,
		},
		"a JSON patch of what was there adopts nothing": {inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"/metadata/ownerReferences"}]`, `{"metadata":{"ownerReferences":[` + others + `]}}`, same},

		// a reference in a version of the API that may not be served any more
		"a replacement renews what the role wrote, and keeps its flags": {
			inNamespace(), "update", jsonType, `{"metadata":{"ownerReferences":[` + oursOldCtrl + `]}}`, "", `{"metadata":{"ownerReferences":[` + oursCtrl + `]}}`,
		},
		"a replacement renews what stands, and keeps its flags": {
			inNamespace(), "update", jsonType, `{"metadata":{}}`, `{"metadata":{"ownerReferences":[` + oursOldCtrl + `]}}`, `{"metadata":{"ownerReferences":[` + oursCtrl + `]}}`,
		},
		"an apply renews what the role wrote": {
			inNamespace(), "patch", applyType, `{"metadata":{"ownerReferences":[` + oursOldCtrl + `]}}`, "", `{"metadata":{"ownerReferences":[` + oursCtrl + `]}}`,
		},
		"a merge patch of other things renews it": {
			inNamespace(), "patch", mergeType, `{"data":{"a":"b"}}`, `{"metadata":{"resourceVersion":"7","ownerReferences":[` + others + `,` + oursOldCtrl + `]}}`,
			`{"data":{"a":"b"},"metadata":{"resourceVersion":"7","ownerReferences":[` + others + `,` + oursCtrl + `]}}`,
		},
		"a merge patch that depends on a version still does": {
			inNamespace(), "patch", mergeType, `{"metadata":{"resourceVersion":"5"}}`, `{"metadata":{"resourceVersion":"7","ownerReferences":[` + oursOld + `]}}`,
			`{"metadata":{"resourceVersion":"5","ownerReferences":[` + ours + `]}}`,
		},
		"a strategic patch of other things renews it": {
			inNamespace(), "patch", strategicType, `{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"ownerReferences":[` + others + `,` + oursOldCtrl + `]}}`,
			`{"metadata":{"labels":{"a":"b"},"ownerReferences":[{"uid":"u1","apiVersion":"g.io/v1"}]}}`,
		},
		"a strategic patch with the old reference renews it": {
			inNamespace(), "patch", strategicType, `{"metadata":{"ownerReferences":[` + oursOld + `]}}`, `{"metadata":{"ownerReferences":[` + oursOld + `]}}`,
			`{"metadata":{"$setElementOrder/ownerReferences":[{"uid":"u1"}],"ownerReferences":[{"apiVersion":"g.io/v1","uid":"u1"}]}}`,
		},
		"a JSON patch of other things renews it, in its place": {
			inNamespace(), "patch", jsonPatchType, `[{"op":"add","path":"/data","value":{}}]`, `{"metadata":{"ownerReferences":[` + others + `,` + oursOldCtrl + `]}}`,
			`[{"op":"add","path":"/data","value":{}},{"op":"test","path":"/metadata/ownerReferences/1/uid","value":"u1"},{"op":"replace","path":"/metadata/ownerReferences/1/apiVersion","value":"g.io/v1"}]`,
		},
		"a JSON patch that adds another's renews ours": {
			inNamespace(), "patch", jsonPatchType, `[{"op":"add","path":"/metadata/ownerReferences/0","value":` + others + `}]`, `{"metadata":{"ownerReferences":[` + oursOld + `]}}`,
			`[{"op":"add","path":"/metadata/ownerReferences/0","value":` + others + `},{"op":"test","path":"/metadata/ownerReferences/1/uid","value":"u1"},{"op":"replace","path":"/metadata/ownerReferences/1/apiVersion","value":"g.io/v1"}]`,
		},
		// what is to outlive its owner
		"a PUT that makes it gives no reference":            {inNamespace(), "update", jsonType, `{"metadata":{"annotations":{` + keep + `}}}`, "", same},
		"nor does an apply that makes it":                   {inNamespace(), "patch", applyType, `{"metadata":{"annotations":{` + keep + `}}}`, "", same},
		"nor a POST of YAML":                                {inNamespace(), "create", "application/yaml", "metadata: {annotations: {helm.sh/resource-policy: keep}}", "", same},
		"nor a cluster-scoped owner's":                      {ofClusterScoped(), "create", jsonType, `{"metadata":{"annotations":{` + keep + `}}}`, "", same},
		"a PUT takes the reference of what stands":          {inNamespace(), "update", jsonType, `{"metadata":{"ownerReferences":[` + others + `,` + ours + `],"annotations":{` + keep + `}}}`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, `{"metadata":{"ownerReferences":[` + others + `],"annotations":{` + keep + `}}}`},
		"a merge patch takes it":                            {inNamespace(), "patch", mergeType, `{"metadata":{"annotations":{` + keep + `}}}`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, `{"metadata":{"ownerReferences":null,"annotations":{` + keep + `}}}`},
		"a strategic patch takes it":                        {inNamespace(), "patch", strategicType, `{"metadata":{"annotations":{` + keep + `}}}`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, `{"metadata":{"ownerReferences":null,"annotations":{` + keep + `}}}`},
		"a JSON patch takes it":                             {inNamespace(), "patch", jsonPatchType, `[{"op":"add","path":"/metadata/annotations/helm.sh~1resource-policy","value":"keep"}]`, `{"metadata":{"annotations":{},"ownerReferences":[` + ours + `,` + others + `]}}`, `[{"op":"add","path":"/metadata/annotations/helm.sh~1resource-policy","value":"keep"},{"op":"add","path":"/metadata/ownerReferences","value":[` + others + `]}]`},
		"a patch of its other things does not link it":      {inNamespace(), "patch", mergeType, `{"metadata":{"annotations":null}}`, `{"metadata":{"annotations":{` + keep + `}}}`, same},
		"a merge patch of what is up to date passes":        {inNamespace(), "patch", mergeType, `{"data":{}}`, `{"metadata":{"ownerReferences":[` + ours + `]}}`, same},
		"another owner's old reference stays":               {inNamespace(), "patch", mergeType, `{"data":{}}`, `{"metadata":{"ownerReferences":[{"apiVersion":"g.io/v1beta1","kind":"K","name":"other","uid":"u7"}]}}`, same},
		"what outlives its owner has nothing to be renewed": {inNamespace(), "patch", mergeType, `{"data":{}}`, `{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"},"ownerReferences":[` + oursOld + `]}}`, same},
	} {
		t.Run(name, func(t *testing.T) {
			write, err := ownership.Parse(test.verb, test.contentType, []byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			var live map[string]any
			if test.live != "" {
				live = decode(t, test.live).(map[string]any)
			}
			if write.Needs(test.target) == ownership.NeedsNothing {
				live = nil // Nobody would have looked.
			}
			body, contentType, err := write.AddOwner(test.target, live)
			if err != nil {
				t.Fatal(err)
			}
			if test.want == same {
				if string(body) != test.body || contentType != test.contentType {
					t.Errorf("want the body as it came, got %s %s", contentType, body)
				}
				return
			}
			if diff := cmp.Diff(decode(t, test.want), decode(t, string(body))); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if wantType := sent(test.verb, test.contentType); contentType != wantType {
				t.Errorf("want content type %q, got %q", wantType, contentType)
			}
		})
	}
}

func sent(verb, contentType string) string {
	if verb == "patch" {
		return contentType
	}
	return jsonType
}

func TestTheOwnerIsNotItsOwnChild(t *testing.T) {
	itself := target("ns", "ns")
	itself.Name = "cr"
	unnamed := target("ns", "ns")
	unnamed.Name = ""
	for name, test := range map[string]struct {
		target            ownership.Target
		verb, contentType string
	}{
		"created again, by the name in the body": {unnamed, "create", jsonType},
		"created by apply":                       {itself, "patch", applyType},
		"created by PUT":                         {itself, "update", jsonType},
	} {
		t.Run(name, func(t *testing.T) {
			const body = `{"apiVersion":"g.io/v1beta1","kind":"K","metadata":{"name":"cr"}}`
			write, err := ownership.Parse(test.verb, test.contentType, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if needs := write.Needs(test.target); needs != ownership.NeedsNothing {
				t.Errorf("want it to need nothing, got %v", needs)
			}
			if got, _, err := write.AddOwner(test.target, nil); err != nil || string(got) != body {
				t.Errorf("want it as it came, got %s, %v", got, err)
			}
		})
	}
}

func TestLook(t *testing.T) {
	for name, test := range map[string]struct {
		target                  ownership.Target
		verb, contentType, body string
		want                    ownership.Needs
	}{
		"a POST makes a new object":                      {inNamespace(), "create", jsonType, `{}`, ownership.NeedsNothing},
		"a PUT may replace one":                          {inNamespace(), "update", jsonType, `{}`, ownership.NeedsMetadata},
		"a PUT with the reference needs nothing":         {inNamespace(), "update", jsonType, `{"metadata":{"ownerReferences":[` + ours + `]}}`, ownership.NeedsNothing},
		"a PUT elsewhere with the annotations neither":   {elsewhere(), "update", jsonType, `{"metadata":{"annotations":{` + notes + `}}}`, ownership.NeedsNothing},
		"an illegal reference needs a look":              {elsewhere(), "update", jsonType, `{"metadata":{"annotations":{` + notes + `},"ownerReferences":[` + ours + `]}}`, ownership.NeedsMetadata},
		"an apply may make or change":                    {inNamespace(), "patch", applyType, `{}`, ownership.NeedsMetadata},
		"a patch of the spec":                            {inNamespace(), "patch", mergeType, `{"spec":{}}`, ownership.WantsMetadata},
		"a patch of labels":                              {inNamespace(), "patch", strategicType, `{"metadata":{"labels":{"a":"b"}}}`, ownership.WantsMetadata},
		"a patch of an annotation":                       {inNamespace(), "patch", mergeType, `{"metadata":{"annotations":{"a":null}}}`, ownership.WantsMetadata},
		"elsewhere there is no reference to be renewed":  {elsewhere(), "patch", mergeType, `{"spec":{}}`, ownership.NeedsNothing},
		"nor by an operation":                            {elsewhere(), "patch", jsonPatchType, `[{"op":"remove","path":"/spec"}]`, ownership.NeedsNothing},
		"a patch of all annotations":                     {inNamespace(), "patch", mergeType, `{"metadata":{"annotations":null}}`, ownership.NeedsMetadata},
		"a patch of our annotation":                      {inNamespace(), "patch", mergeType, `{"metadata":{"annotations":{"operator-sdk/primary-resource":"x"}}}`, ownership.NeedsMetadata},
		"a patch of the references":                      {inNamespace(), "patch", strategicType, `{"metadata":{"ownerReferences":[]}}`, ownership.NeedsMetadata},
		"a patch of metadata as a whole":                 {inNamespace(), "patch", mergeType, `{"metadata":null}`, ownership.NeedsMetadata},
		"a directive about the object":                   {inNamespace(), "patch", strategicType, `{"$patch":"replace","spec":{}}`, ownership.NeedsMetadata},
		"a directive about metadata":                     {inNamespace(), "patch", strategicType, `{"metadata":{"$retainKeys":["name"]}}`, ownership.NeedsMetadata},
		"a directive about annotations":                  {inNamespace(), "patch", strategicType, `{"metadata":{"annotations":{"$patch":"delete"}}}`, ownership.NeedsMetadata},
		"an operation on the spec":                       {inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"/spec"}]`, ownership.WantsMetadata},
		"an operation on an annotation":                  {inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"/metadata/annotations/a"}]`, ownership.WantsMetadata},
		"an operation on our annotation":                 {inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"/metadata/annotations/operator-sdk~1primary-resource"}]`, ownership.NeedsObject},
		"an operation on the references":                 {inNamespace(), "patch", jsonPatchType, `[{"op":"add","path":"/metadata/ownerReferences/-","value":{}}]`, ownership.NeedsObject},
		"an operation on metadata":                       {inNamespace(), "patch", jsonPatchType, `[{"op":"add","path":"/metadata","value":{}}]`, ownership.NeedsObject},
		"an operation on everything":                     {inNamespace(), "patch", jsonPatchType, `[{"op":"replace","path":"","value":{}}]`, ownership.NeedsObject},
		"a copy of our annotation takes nothing from it": {inNamespace(), "patch", jsonPatchType, `[{"op":"copy","from":"/metadata/annotations","path":"/data"}]`, ownership.WantsMetadata},
	} {
		t.Run(name, func(t *testing.T) {
			write, err := ownership.Parse(test.verb, test.contentType, []byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if got := write.Needs(test.target); got != test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		verb, contentType, body string
		wantUnreadable          bool
	}{
		"Protobuf":                          {"create", "application/vnd.kubernetes.protobuf", "k8s\x00", true},
		"Protobuf in a PUT":                 {"update", "application/vnd.kubernetes.protobuf", "k8s\x00", true},
		"CBOR":                              {"patch", "application/apply-patch+cbor", "\xd9\xd9\xf7", true},
		"half an object":                    {"create", jsonType, "{", false},
		"a list":                            {"create", jsonType, "[]", false},
		"null":                              {"update", jsonType, "null", false},
		"two objects, of which one is read": {"update", jsonType, `{"metadata":{}}{}`, false},
		"a text":                            {"patch", applyType, "text", false},
		"YAML that is none":                 {"patch", applyType, "a: b: c", false},
		"a merge patch that is a list":      {"patch", mergeType, "[]", false},
		"a JSON patch that is an object":    {"patch", jsonPatchType, "{}", false},
		"an operation that is none":         {"patch", jsonPatchType, "[1]", false},
		"a path that is none":               {"patch", jsonPatchType, `[{"op":"add","path":1}]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ownership.Parse(test.verb, test.contentType, []byte(test.body))
			_, unreadable := errors.AsType[*ownership.UnreadableError](err)
			if err == nil || unreadable != test.wantUnreadable {
				t.Errorf("want an error (of its format: %v), got %v", test.wantUnreadable, err)
			}
		})
	}
}

func TestMetadataThatIsNoneIsRefused(t *testing.T) {
	for name, body := range map[string]string{
		"metadata":        `{"metadata":"x"}`,
		"annotations":     `{"metadata":{"annotations":["x"]}}`,
		"ownerReferences": `{"metadata":{"ownerReferences":{"uid":"u1"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			write, err := ownership.Parse("create", jsonType, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if got, _, err := write.AddOwner(elsewhere(), nil); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("want an error that names %s, got %s, %v", name, got, err)
			}
		})
	}
}

func TestOtherFormatsOfPatchesAreTheAPIServers(t *testing.T) {
	for _, contentType := range []string{"", "text/plain", jsonType, "application/merge-patch"} {
		if write, err := ownership.Parse("patch", contentType, []byte("?")); err != nil || write.Needs(inNamespace()) != ownership.NeedsNothing {
			t.Errorf("%q: want it to pass, got %v", contentType, err)
		} else if body, got, err := write.AddOwner(inNamespace(), nil); err != nil || string(body) != "?" || got != contentType {
			t.Errorf("%q: it became %s %q, %v", contentType, got, body, err)
		}
	}
}

func decode(tb testing.TB, text string) any {
	tb.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		tb.Fatalf("decode %s: %v", text, err)
	}
	return value
}

// An apply that comes with a key in YAML's other style could not be read once it is JSON.
func TestAKeyTooLongForYAMLIsRefused(t *testing.T) {
	for length, want := range map[int]bool{1022: true, 1023: false} {
		write, err := ownership.Parse("patch", applyType, []byte("metadata: {name: c}\n? "+strings.Repeat("k", length)+"\n: v\n"))
		if err != nil {
			t.Fatal(err)
		}
		sent, _, err := write.AddOwner(inNamespace(), nil)
		var object map[string]any
		if want && (err != nil || yaml.Unmarshal(sent, &object) != nil) || !want && err == nil {
			t.Errorf("with a key of %d characters: %v", length, err)
		}
	}
}

func TestWhatPrecedesAnApply(t *testing.T) {
	const uidOf1 = `{"op":"test","path":"/metadata/ownerReferences/1/uid","value":"u1"}`
	for name, test := range map[string]struct{ contentType, body, live, want string }{
		"nothing where the reference is right":   {applyType, `{}`, `{"metadata":{"ownerReferences":[` + others + `,` + ours + `]}}`, ""},
		"nothing where there is none":            {applyType, `{}`, `{"metadata":{"ownerReferences":[` + others + `]}}`, ""},
		"nothing where there is no object":       {applyType, `{}`, "", ""},
		"nothing for another format":             {mergeType, `{}`, `{"metadata":{"ownerReferences":[` + oursOld + `]}}`, ""},
		"a renewal":                              {applyType, `{}`, `{"metadata":{"ownerReferences":[` + others + `,` + oursOld + `]}}`, `[` + uidOf1 + `,{"op":"replace","path":"/metadata/ownerReferences/1/apiVersion","value":"g.io/v1"}]`},
		"a removal from what outlives its owner": {applyType, `{"metadata":{"annotations":{` + keep + `}}}`, `{"metadata":{"ownerReferences":[` + others + `,` + oursOld + `]}}`, `[` + uidOf1 + `,{"op":"remove","path":"/metadata/ownerReferences/1"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			write, err := ownership.Parse("patch", test.contentType, []byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			var live map[string]any
			if test.live != "" {
				live = decode(t, test.live).(map[string]any)
			}
			got := write.Before(inNamespace(), live)
			if test.want == "" || got == nil {
				if test.want != string(got) {
					t.Errorf("want %s, got %s", test.want, got)
				}
				return
			}
			if diff := cmp.Diff(decode(t, test.want), decode(t, string(got))); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}
