package ensigncmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/ensign-operator/ensign/internal/author/crlog"
	"github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/sanitize"
)

// logsFlags are the flags of "logs".
type logsFlags struct {
	fleetFlags

	follow, previous bool
	file             string
	since            time.Duration
	managerNamespace string
	selector         string
}

func newLogsCommand() *cobra.Command {
	f := &logsFlags{fleetFlags: fleetFlags{run: cli.NewFlags()}}
	cmd := &cobra.Command{
		Use:   "logs KIND/NAME",
		Short: "Show one resource's lines of the manager's log",
		Long: `logs shows the lines of the manager's log that are about one custom resource, with
the output of its failed tasks, from all pods of the manager. The resource need
not exist any more.

It looks for pods with the labels of --selector in all namespaces, or in that of
--manager-namespace, and needs the rights to list them and to read their logs.
With --follow it continues with pods that replace them. With --previous it shows
the log of a manager before its container restarted, for example after the kernel
killed it for its memory.
` + kindsHelp + `

Exit codes: 0; 2 the log could not be read.`,
		Example: `  ensign logs greeting/hello -n shop --follow

  # Of a manager that was started again: what it wrote before.
  ensign logs greeting/hello -n shop --previous

  # From a file, or from another program; without -n in any namespace:
  ensign logs greeting/hello --file manager.log
  journalctl -u my-operator | ensign logs greeting/hello --file -`,
		Args: cli.OrUnable(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return cli.AsUnable(f.execute(cmd, args[0])) },
	}
	f.register(cmd, "`namespace` of the resource; default the kubeconfig's")
	set := cmd.Flags()
	set.BoolVarP(&f.follow, "follow", "f", false, "go on with what comes; Ctrl-C ends")
	set.BoolVarP(&f.previous, "previous", "p", false, "show the log of the container before the present one")
	set.DurationVar(&f.since, "since", 0, "leave out what is older than this `time`, such as 10m")
	set.StringVar(&f.file, "file", "", "read this `file` with a manager's log instead; - is standard input")
	set.StringVar(&f.managerNamespace, "manager-namespace", "", "`namespace` of the manager's pods; default all")
	set.StringVarP(&f.selector, "selector", "l", "app.kubernetes.io/component=manager", "`labels` of the manager's pods")
	cmd.MarkFlagsMutuallyExclusive("follow", "previous")
	for _, name := range []string{"follow", "previous", "since", "manager-namespace", "selector"} {
		cmd.MarkFlagsMutuallyExclusive("file", name)
	}
	cmd.ValidArgsFunction = f.completion(false)
	return cmd
}

func (f *logsFlags) execute(cmd *cobra.Command, arg string) error {
	word, name, err := kinds.Split(arg)
	if err == nil && name == "" {
		err = fmt.Errorf("%q is not KIND/NAME, such as %s/sample", arg, arg)
	}
	if err != nil {
		return err
	}
	printer := &crlog.Printer{Out: cmd.OutOrStdout()}
	if f.file != "" {
		return f.fromFile(cmd, word, name, printer)
	}
	c, err := f.connect()
	if err != nil {
		return err
	}
	object, err := f.object(c, word, name)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("use the kubeconfig: %w", err)
	}
	pods := crlog.Pods{Client: client, Namespace: f.managerNamespace, Selector: f.selector, Since: f.since, Previous: f.previous, Note: func(text string) {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", sanitize.Text(text))
	}}
	if f.follow {
		return pods.Follow(cmd.Context(), object, printer)
	}
	if err = pods.Read(cmd.Context(), object, printer); errors.Is(err, crlog.ErrNoPods) {
		return fmt.Errorf("%w: none has the labels %q; --selector and --manager-namespace say where it is, --file reads a log", err, f.selector)
	}
	return err
}

// fromFile needs no cluster.
func (f *logsFlags) fromFile(cmd *cobra.Command, word, name string, to *crlog.Printer) error {
	_, list, err := f.settings()
	if err != nil {
		return err
	}
	object := crlog.Object{Kind: word, Namespace: f.namespace, Name: name}
	if f.namespace == "" {
		object.Namespace = crlog.AnyNamespace
	}
	input, err := openInput(cmd, f.file)
	if err != nil {
		return err
	}
	defer func() { _ = input.Close() }() // It was only read.
	if err := to.Copy(object, input); err != nil || to.Printed() {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "note: %s has no line about %s/%s\n", f.file, word, name)
	if _, err := kinds.Of(word, list); err != nil && list != nil { // A program may watch it in Go.
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", err)
	}
	return nil
}

// object returns the CR as the log names it.
func (f *logsFlags) object(c *clusterOf, word, name string) (crlog.Object, error) {
	kind, err := c.finder.Find(word)
	if err != nil {
		return crlog.Object{}, err
	}
	object := crlog.Object{Kind: kinds.Full(kind.GVK.GroupKind()), Namespace: f.namespace, Name: name}
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(kind.GVK)
	namespaced, err := c.IsObjectNamespaced(cr)
	switch {
	case err == nil && !namespaced:
		object.Namespace = ""
	case f.namespace == "":
		object.Namespace = c.Namespace
	}
	return object, nil // A kind that is not served may have been.
}
