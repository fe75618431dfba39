package once

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"

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

// Variables writes the extra vars of a run to o.Out, as Ansible sees them, as YAML or JSON.
// Values of Secrets, and of variables whose name says that they are secret, are left out.
// Without a cluster c is nil.
func Variables(ctx context.Context, o Options, c client.Client, list []watches.Watch, asJSON bool) error {
	r := reader{options: o, client: c, watches: list}
	s, err := r.read(ctx)
	if err != nil {
		return err
	}
	for _, note := range s.notes {
		fmt.Fprintln(o.Err, "note:", sanitize.Text(note))
	}
	s.watch.MarkUnsafe = false // The marks are for Ansible's decoder: no variable shows them.
	variables, err := (&engine.Engine{Watch: s.watch}).Variables(content.Request{Object: s.cr, Finalizing: o.Finalize})
	if err != nil {
		return fmt.Errorf("nothing would be run: %w", err)
	}
	for _, path := range variables.Dropped {
		fmt.Fprintln(o.Err, "note: not passed to Ansible:", sanitize.Text(path))
	}
	text, err := variables.Encode()
	if err != nil {
		return err
	}
	var vars map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&vars); err != nil {
		return fmt.Errorf("read the variables: %w", err)
	}
	shown := withoutSecrets(jobevent.Sanitize(vars))
	if asJSON {
		text, err = json.MarshalIndent(shown, "", "  ")
		text = append(text, '\n')
	} else {
		text, err = yaml.Marshal(shown)
	}
	if err != nil {
		return fmt.Errorf("write the variables: %w", err)
	}
	_, err = fmt.Fprint(o.Out, sanitize.Text(string(text)))
	return err
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
