package once

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/ansible/engine"
	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// secretName matches names of variables whose text is not shown. The name of a Secret object is not
// secret.
var secretName = regexp.MustCompile(`(?i)(password|passwd|passphrase|token|private_?key|api_?key|credentials?)$`)

const hidden = "(hidden)"

// ChartValues returns the values that a run for the CR gives its chart, and a function that hides those of Secrets in a
// text.
type ChartValues func(ctx context.Context, cr *unstructured.Unstructured) (values map[string]any, hide func(text string) string, err error)

// Variables writes the extra vars of a run to o.Out, as Ansible sees them, or the values of a chart, as YAML or JSON.
// Values of Secrets, and of variables whose name says that they are secret, are left out.
// Without a cluster c is nil.
func Variables(ctx context.Context, o Options, c client.Client, list []watches.Watch, ofChart ChartValues, asJSON bool) error {
	r := reader{options: o, client: c, watches: list}
	s, err := r.find(ctx)
	isChart := err == nil && !o.Finalize && !s.watch.ContentKind().Once
	if err == nil && !isChart {
		s, err = r.complete(s)
	}
	if err != nil {
		return err
	}
	for _, note := range s.notes {
		fmt.Fprintln(o.Err, "note:", sanitize.Text(note))
	}
	var vars map[string]any
	hide := sanitize.Text
	if isChart {
		vars, hide, err = ofChart(ctx, s.cr)
	} else {
		vars, err = extraVars(o, s)
	}
	if err != nil {
		return fmt.Errorf("nothing would be run: %w", err)
	}
	shown := withoutSecrets(jobevent.Sanitize(vars))
	var text []byte
	if asJSON {
		text, err = json.MarshalIndent(shown, "", "  ")
		text = append(text, '\n')
	} else {
		text, err = yaml.Marshal(shown)
	}
	if err != nil {
		return fmt.Errorf("write the variables: %w", err)
	}
	_, err = fmt.Fprint(o.Out, sanitize.Text(hide(string(text))))
	return err
}

// extraVars returns the variables as Ansible decodes them.
func extraVars(o Options, s subject) (vars map[string]any, err error) {
	s.watch.MarkUnsafe = false // The marks are for Ansible's decoder: no variable shows them.
	variables, err := (&engine.Engine{Watch: s.watch}).Variables(content.Request{Object: s.cr, Finalizing: o.Finalize})
	if err != nil {
		return nil, err
	}
	for _, path := range variables.Dropped {
		fmt.Fprintln(o.Err, "note: not passed to Ansible:", sanitize.Text(path))
	}
	text, err := variables.Encode()
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&vars); err != nil {
		return nil, fmt.Errorf("read the variables: %w", err)
	}
	return vars, nil
}

func withoutSecrets(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if text, isText := member.(string); isText && text != "" && secretName.MatchString(name) {
				value[name] = hidden
				continue
			}
			value[name] = withoutSecrets(member)
		}
	case []any:
		for i := range value {
			value[i] = withoutSecrets(value[i])
		}
	}
	return value
}
