package action

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
	chartobjects "github.com/ensign-operator/ensign/internal/chart/objects"
	records "github.com/ensign-operator/ensign/internal/chart/release"
)

// changed reports whether the chart renders other objects now than in the last revision. It is
// rendered twice: differences between the two are random, and mean nothing. Hooks do not count.
func (r *run) changed(ctx context.Context) (bool, error) {
	found, err := r.config.Releases.Last(r.Name)
	if err != nil {
		return false, err
	}
	last, err := records.Of(found)
	if err != nil {
		return false, err
	}
	before, err := objectsOf(last.Manifest)
	if err != nil {
		return false, err
	}
	var rendered [2]map[string]any
	for i := range rendered {
		if rendered[i], err = r.renderAs(ctx, last); err != nil {
			return false, err
		}
	}
	return !sameObjects(before, rendered[0], rendered[1]), nil
}

// renderAs returns the objects that the chart renders now for the revision: with its number, and as
// an installation if it was one.
func (r *run) renderAs(ctx context.Context, last *records.Release) (map[string]any, error) {
	options := common.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: last.Version, IsUpgrade: true}
	if records.Installed(last) {
		options.Revision, options.IsInstall, options.IsUpgrade = 1, true, false // Whatever the number.
	}
	_, made, err := r.sorted(ctx, options)
	if err != nil {
		return nil, err
	}
	text, err := r.served(manifestOf(made))
	if err != nil {
		return nil, err
	}
	return objectsOf(text)
}

// render returns the text of each template of the chart. It loads the chart again because Helm
// changes the one that it gets.
func (r *run) render(ctx context.Context, options common.ReleaseOptions) (map[string]string, error) {
	c, err := loader.Load(r.Chart)
	if err != nil {
		return nil, fmt.Errorf("load the chart: %w", err)
	}
	given := runtime.DeepCopyJSON(r.Values)
	if err := chartutil.ProcessDependencies(c, given); err != nil {
		return nil, fmt.Errorf("the chart's dependencies: %w", err)
	}
	capabilities, err := r.capabilities()
	if err != nil {
		return nil, err
	}
	values, err := util.ToRenderValuesWithSchemaValidation(c, given, options, capabilities, true)
	if err != nil {
		return nil, err
	}
	config, err := r.config.RESTClientGetter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	e := engine.New(config)
	e.CustomTemplateFuncs = r.evaluate(ctx, c)
	return e.RenderWithContext(ctx, c, values)
}

// capabilities returns the capabilities of the API server for templates, for Helm too.
func (r *run) capabilities() (*common.Capabilities, error) {
	if r.config.Capabilities != nil {
		return r.config.Capabilities, nil
	}
	client, err := r.config.RESTClientGetter.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	if r.ReplaceCRDs {
		client.Invalidate() // Answers from before they were replaced are on disk.
	}
	version, err := client.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its version: %w", err)
	}
	versions, err := action.GetVersionSet(client)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("ask the API server for its kinds: %w", err)
	}
	r.config.Capabilities = &common.Capabilities{
		APIVersions: versions, HelmVersion: common.DefaultCapabilities.HelmVersion,
		KubeVersion: common.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
	}
	return r.config.Capabilities, nil
}

// objectsOf returns the objects of a manifest by kind, namespace and name, without hooks.
func objectsOf(text string) (map[string]any, error) {
	objects, err := manifest.Parse(text)
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	for _, object := range objects {
		if object.GetAnnotations()[release.HookAnnotation] == "" {
			all[kindOf(object)+" "+object.GetNamespace()+"/"+object.GetName()] = object.Object
		}
	}
	return all, nil
}

func kindOf(object *unstructured.Unstructured) string {
	return object.GroupVersionKind().GroupKind().String()
}

// sameObjects reports whether before equals the objects that were rendered once and twice, except where these
// two differ. Objects whose names are random do not count.
func sameObjects(before, once, twice map[string]any) bool {
	random := map[string]bool{} // kinds
	for name := range once {
		if twice[name] == nil {
			kind, _, _ := strings.Cut(name, " ")
			random[kind] = true
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(once))) {
		kind, _, _ := strings.Cut(name, " ")
		if random[kind] && (once[name] == nil || twice[name] == nil) {
			continue
		}
		randomParts := chartobjects.Differing(once[name], twice[name], "")
		for _, at := range chartobjects.Differing(before[name], once[name], "") {
			if !slices.ContainsFunc(randomParts, func(part string) bool { return strings.HasPrefix(at+"/", part+"/") }) {
				return false
			}
		}
	}
	return true
}
