package values

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/syntax"
)

// callsTpl reports whether a template of the chart or of a subchart may evaluate text, or cannot be
// parsed.
func callsTpl(c *chart.Chart) bool {
	return slices.ContainsFunc(c.Templates, func(f *common.File) bool {
		parsed, err := syntax.Parse(string(f.Data))
		return err != nil || slices.Contains(parsed.Functions(), "tpl")
	}) || slices.ContainsFunc(c.Dependencies(), callsTpl)
}

// trees are the values at one place: of the release, of the CR's spec, of the author of the watch,
// and of the chart's defaults.
type trees struct{ values, spec, author, defaults any }

// field returns the values below a key.
func (t trees) field(key string) trees {
	below := func(tree any) any {
		fields, _ := tree.(map[string]any)
		return fields[key]
	}
	return trees{below(t.values), below(t.spec), below(t.author), below(t.defaults)}
}

// key returns the key itself in the trees that have it.
func (t trees) key(key string) trees {
	itself := func(tree any) any {
		fields, _ := tree.(map[string]any)
		if _, has := fields[key]; has {
			return key
		}
		return nil
	}
	return trees{itself(t.values), itself(t.spec), itself(t.author), itself(t.defaults)}
}

// element returns the values at an index of a list.
func (t trees) element(i int) trees {
	at := func(tree any) any {
		if list, _ := tree.([]any); i < len(list) {
			return list[i]
		}
		return nil
	}
	return trees{at(t.values), at(t.spec), at(t.author), at(t.defaults)}
}

// texts calls visit with each text and each key of the values, and its path.
func (t trees) texts(path string, visit func(path, text string, t trees)) {
	switch v := t.values.(type) {
	case string:
		visit(path, v, t)
	case []any:
		for i := range v {
			t.element(i).texts(fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			visit(path, key, t.key(key))
			t.field(key).texts(path+"."+key, visit)
		}
	}
}

// looksLikeTemplates reports whether one of the texts and keys may be a template.
func looksLikeTemplates(values map[string]any) (found bool) {
	trees{values: values}.texts("", func(_, text string, _ trees) { found = found || strings.Contains(text, syntax.Opening) })
	return found
}

// sortTemplates finds the texts and keys that look like templates. Those of the author and at allowed
// paths are trusted, and texts that the chart has at the same place: users copy values.yaml into a
// spec.
func (v *Values) sortTemplates(t trees, allowed []string) {
	t.texts("spec", func(path, text string, at trees) {
		switch {
		case !strings.Contains(text, syntax.Opening):
		case at.author == text, covered(path, allowed):
			v.Trusted = append(v.Trusted, text)
		case at.defaults != text:
			v.Untrusted = append(v.Untrusted, order.Text{Path: path, Text: text, OfObject: at.spec != text})
		}
	})
}

// defaults returns the chart's values without a CR, with the subcharts that the values enable; nil if
// that fails.
func defaults(c *chart.Chart, values map[string]any) any {
	c = forHelm(c)
	if chartutil.ProcessDependencies(c, runtime.DeepCopyJSON(values)) != nil {
		return nil
	}
	all, err := util.CoalesceValues(c, map[string]any{})
	if err != nil {
		return nil
	}
	return map[string]any(all)
}

// covered reports whether the path is one of those, or below one.
func covered(path string, paths []string) bool {
	return slices.ContainsFunc(paths, func(one string) bool {
		return path == one || strings.HasPrefix(path, one+".") || strings.HasPrefix(path, one+"[")
	})
}
