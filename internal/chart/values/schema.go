package values

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"k8s.io/apimachinery/pkg/runtime"
)

// check checks the values as the chart will see them: its dependencies, and each values.schema.json. author
// are those that no CR can change. An error is a FaultError if no change of a CR can fix it.
func (s *Source) check(c *chart.Chart, values, author map[string]any) error {
	found, err := s.violations(c, values)
	if errors.Is(err, ErrChart) || err == nil && len(found) == 0 {
		return err
	}
	without, alone := s.violations(c, author)
	switch {
	case err != nil && alone != nil:
		return invalidChart(fmt.Errorf("the chart's own values: %w", alone))
	case err != nil:
		return err
	case slices.ContainsFunc(found, func(v violation) bool { return v.fixable(without, values, author) }):
		return errors.New(text(found))
	}
	return invalidChart(fmt.Errorf("the chart's values.yaml or the watch's overrideValues violate values.schema.json, independent of the spec of a resource: correct them. %s", text(found)))
}

// violation is an error of a chart's schema about one of its values.
type violation struct {
	chart string
	// at is the place of the chart's values in those of the whole chart.
	at    []string
	cause *jsonschema.ValidationError
}

// fixable reports whether a change of the spec can fix the violation: the spec has caused it, or could
// set the missing value.
func (v violation) fixable(withoutSpec []violation, values, author map[string]any) bool {
	if _, ok := v.cause.ErrorKind.(*kind.Required); ok {
		return true
	}
	place := slices.Concat(v.at, v.cause.InstanceLocation)
	if has(values, place) && !has(author, place) {
		return true
	}
	return !slices.ContainsFunc(withoutSpec, func(other violation) bool {
		return slices.Equal(place, slices.Concat(other.at, other.cause.InstanceLocation)) && v.cause.Error() == other.cause.Error()
	})
}

// has reports whether there is a value at the path.
func has(value any, path []string) bool {
	for _, key := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return true // A list belongs to the source that gives it.
		}
		if value, ok = fields[key]; !ok {
			return false
		}
	}
	return true
}

// text returns the messages of the violations, in Helm's words.
func text(violations []violation) string {
	var all strings.Builder
	for i, v := range violations {
		if i == 0 || violations[i-1].chart != v.chart {
			fmt.Fprintf(&all, "%s:\n", v.chart)
		}
		fmt.Fprintf(&all, "- %s\n", v.cause.Error())
	}
	return all.String()
}

// violations returns the schema errors of the chart and its enabled subcharts.
func (s *Source) violations(c *chart.Chart, values map[string]any) (found []violation, err error) {
	c, values = forHelm(c), runtime.DeepCopyJSON(values)
	if values == nil {
		values = map[string]any{}
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, fmt.Errorf("the chart's dependencies: %w", err)
	}
	if err := missing(c); err != nil {
		return nil, err
	}
	all, err := util.CoalesceValues(c, values)
	if err != nil {
		return nil, err
	}
	var visit func(c *chart.Chart, values map[string]any, at []string) error
	visit = func(c *chart.Chart, values map[string]any, at []string) error {
		if c.Schema != nil {
			schema, err := s.schemas.compiled(c, s.now())
			if err != nil {
				return err
			}
			if invalid, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(values)); ok {
				for _, cause := range invalid.Causes {
					found = append(found, violation{c.Name(), at, cause})
				}
			}
		}
		for _, subchart := range c.Dependencies() {
			if below, ok := values[subchart.Name()].(map[string]any); ok {
				if err := visit(subchart, below, slices.Concat(at, []string{subchart.Name()})); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return found, visit(c, all, nil)
}

const (
	// fetchTime bounds all fetches for a schema, and fetchPause is the pause after a failure: attempts wait
	// for it.
	fetchTime  = 10 * time.Second
	fetchPause = 10 * time.Second
	// maxSchema bounds the fetched text, in bytes.
	maxSchema = 8 << 20
)

// schemas keeps compiled schemas by their texts. The addresses to which a schema refers are fetched
// once. Only the chart's schema has addresses.
type schemas struct {
	mu    sync.Mutex
	known map[string]compiled
}

// compiled is a schema, or the error until a time.
type compiled struct {
	schema *jsonschema.Schema
	err    error
	until  time.Time
}

func (s *schemas) compiled(c *chart.Chart, now time.Time) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := string(c.Schema)
	found, ok := s.known[key]
	if !ok || found.err != nil && !now.Before(found.until) {
		schema, err := compile(c)
		found = compiled{schema, err, now.Add(fetchPause)}
		if s.known == nil {
			s.known = map[string]compiled{}
		}
		s.known[key] = found
	}
	return found.schema, found.err
}

// compile compiles a chart's schema, with the schemas to which it refers.
func compile(c *chart.Chart) (schema *jsonschema.Schema, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%v", cause)
		}
		if err == nil {
			return
		}
		err = fmt.Errorf("values.schema.json of the chart %s: %w", c.Name(), err)
		if unreachable, ok := errors.AsType[*jsonschema.LoadURLError](err); ok && strings.HasPrefix(unreachable.URL, "http") {
			err = &FaultError{ReasonSchemaUnreachable, fmt.Errorf("%w. It is fetched again; a schema without an address in $ref needs no network", err)}
			return
		}
		err = invalidChart(err)
	}()
	const name = "file:///values.schema.json" // Helm's, so that a relative $ref means the same.
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Schema))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	compiler, web := jsonschema.NewCompiler(), fetcher{ctx}
	compiler.UseLoader(jsonschema.SchemeURLLoader{"file": jsonschema.FileLoader{}, "http": web, "https": web, "urn": anything{}})
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}

// fetcher loads schemas with an address in the network.
type fetcher struct{ ctx context.Context } //nolint:containedctx // The compiler gives none.

// Load implements jsonschema.URLLoader.
func (f fetcher) Load(url string) (any, error) {
	request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // It was only read.
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", response.Status)
	}
	return jsonschema.UnmarshalJSON(io.LimitReader(response.Body, maxSchema))
}

// anything is Helm's schema for a name (urn:).
type anything struct{}

// Load implements jsonschema.URLLoader.
func (anything) Load(string) (any, error) { return true, nil }
