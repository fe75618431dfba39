// Package manifests is a kind of content as a Go program brings one: a directory of manifests that
// is applied for each resource of a kind. It shows what an ensign.Custom needs.
//
// A text such as $spec.size in a manifest becomes the value at that path of the resource. The
// manifests are filled in as objects and not as text, so that no resource can add a field to them.
package manifests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/pkg/content"
)

// Engine applies the manifests of a directory. New makes it.
type Engine struct {
	content.EngineDefaults

	mapper    meta.RESTMapper
	manifests []unstructured.Unstructured
	digest    string
}

// New reads the manifests, one in each file.
func New(dir fs.FS, mapper meta.RESTMapper) (*Engine, error) {
	e, sum := &Engine{mapper: mapper}, sha256.New()
	names, _ := fs.Glob(dir, "*.yaml") // The pattern is a good one.
	for _, name := range names {
		var manifest unstructured.Unstructured
		text, err := fs.ReadFile(dir, name)
		if err == nil {
			err = yaml.Unmarshal(text, &manifest.Object)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		e.manifests = append(e.manifests, manifest)
		sum.Write(text)
	}
	e.digest = hex.EncodeToString(sum.Sum(nil))
	return e, nil
}

// Digest is that of the manifests: while they stay as they are, a resource that succeeded does not
// run after a restart.
func (e *Engine) Digest() string { return e.digest }

// Prepare fills the manifests in. A resource that lacks a value is refused: nothing runs until it
// changes.
func (e *Engine) Prepare(_ context.Context, r content.Request) (content.Work, *content.Outcome) {
	w := &work{engine: e, namespace: r.Object.GetNamespace()}
	from := map[string]any{"metadata": r.Object.Object["metadata"], "spec": r.Spec()}
	for i := range e.manifests {
		object := e.manifests[i].DeepCopy()
		if err := fill(object.Object, from); err != nil {
			return w, content.Refusal(content.ReasonInvalidSpec, err)
		}
		w.objects = append(w.objects, object)
	}
	return w, nil
}

// work has the objects of one resource. They go with it by their owner references.
type work struct {
	content.WorkDefaults

	engine    *Engine
	namespace string
	objects   []*unstructured.Unstructured
}

// Run applies the objects through the API proxy, which adds the owner references.
func (w *work) Run(ctx context.Context, job content.Job) content.Result {
	result := content.ResultOf(ctx, w.apply(ctx, job))
	result.Version = content.ShortVersion("", w.engine.digest)
	return result
}

func (w *work) apply(ctx context.Context, job content.Job) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(job.Kubeconfig)
	if err != nil {
		return err
	}
	api, err := client.New(config, client.Options{Mapper: w.engine.mapper})
	if err != nil {
		return err
	}
	api = client.NewNamespacedClient(api, w.namespace)
	for _, object := range w.objects {
		what := object.GetKind() + " " + object.GetName()
		job.Working("apply " + what)
		if err := api.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("manifests"), client.ForceOwnership); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// fill replaces each text $path in the fields by what the path leads to.
func fill(fields map[string]any, from map[string]any) (err error) {
	for key, value := range fields {
		if fields[key], err = filled(value, from); err != nil {
			return err
		}
	}
	return nil
}

func filled(value any, from map[string]any) (_ any, err error) {
	switch v := value.(type) {
	case string:
		if path, is := strings.CutPrefix(v, "$"); is {
			found, ok, err := unstructured.NestedFieldCopy(from, strings.Split(path, ".")...)
			if err != nil || !ok {
				return nil, fmt.Errorf("%s is missing", path)
			}
			return found, nil
		}
	case map[string]any:
		return v, fill(v, from)
	case []any:
		for i := range v {
			if v[i], err = filled(v[i], from); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}
