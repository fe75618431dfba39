package ensigncmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/author/fleet"
	"github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/pkg/content"
)

// controlText has the differences between the commands that control resources.
type controlText struct {
	verb               fleet.Verb
	short, long        string
	waits, given, done string
}

//nolint:gochecknoglobals // A table.
var (
	reconcileText = controlText{
		verb: fleet.Reconcile, short: "Run the content of resources now",
		long: `reconcile requests a run for each of the custom resources, by the annotation
reconcile-requested-at. A current run continues to its end; then another one begins.`,
		waits: "wait until the requested run is over; exit code 1 if it failed", given: "a run is requested",
	}
	suspendText = controlText{
		verb: fleet.Suspend, short: "Keep resources from running",
		long: `suspend pauses each of the custom resources by the annotation paused: nothing runs for
it, except its finalizer when it is deleted. A current run continues to its end.`,
		waits: "wait until the status shows the pause, after a run that is still running", given: "is to be paused", done: "is paused",
	}
	resumeText = controlText{
		verb: fleet.Resume, short: "End what suspend did",
		long: `resume removes the annotation paused from each of the custom resources. The end of the
pause starts a run.`,
		waits: "wait until the run that follows is over; exit code 1 if it failed", given: "is not paused any more",
	}
	cancelText = controlText{
		verb: fleet.Cancel, short: "End the current runs of resources",
		long: `cancel ends the current run of each of the custom resources, a finalizer's too, by the
annotation cancel-requested-at. Nothing runs for them until they change, an event of
an object triggers a run, or somebody requests one (ensign reconcile). The objects stay
as the run has left them.`,
		waits: "wait until the run has ended", given: "its run is to end", done: "its run has ended",
	}
)

// controlFlags are the flags of these commands.
type controlFlags struct {
	fleetFlags
	controlText

	all     bool
	wait    bool
	timeout time.Duration
}

func newControlCommand(text controlText) *cobra.Command {
	f := &controlFlags{fleetFlags: fleetFlags{run: cli.NewFlags()}, controlText: text}
	cmd := &cobra.Command{
		Use:   fmt.Sprintf("%s (KIND/NAME... | --all [KIND...])", text.verb),
		Short: text.short,
		Long: text.long + `

It needs the rights to get and patch the resources, with --all also to list them,
and with --wait to list and watch them.
` + kindsHelp + `

Exit codes: 0; 1 with --wait: the run failed, or was not over in time; 2 a
resource could not be changed.`,
		Example: fmt.Sprintf(`  ensign %[1]s greeting/hello -n shop --wait
  ensign %[1]s --all greetings -n shop`, text.verb),
		RunE: func(cmd *cobra.Command, args []string) error { return cli.AsUnable(f.execute(cmd, args)) },
	}
	f.register(cmd, "`namespace` of the resources; default the kubeconfig's")
	set := cmd.Flags()
	set.BoolVar(&f.all, "all", false, "all resources of the kinds that are named, or of all kinds of watches.yaml, in the namespace")
	set.BoolVar(&f.wait, "wait", false, text.waits)
	set.DurationVar(&f.timeout, "timeout", 10*time.Minute, "the longest `time` of --wait")
	cmd.ValidArgsFunction = f.completion(false)
	return cmd
}

func (f *controlFlags) execute(cmd *cobra.Command, args []string) error {
	isName := func(arg string) bool { return strings.Contains(arg, "/") }
	switch {
	case f.all && slices.ContainsFunc(args, isName):
		return errors.New("--all and KIND/NAME: give one of them")
	case !f.all && len(args) == 0:
		return errors.New("name resources, KIND/NAME, or give --all")
	case !f.all && !slices.ContainsFunc(args, isName):
		return fmt.Errorf("%s names a kind: name resources, KIND/NAME, or give --all", args[0])
	}
	c, err := f.connect()
	if err != nil {
		return err
	}
	f.namespace = cmp.Or(f.namespace, c.Namespace)
	subjects, err := f.subjects(cmd.Context(), c, args)
	if err != nil {
		return err
	}
	if len(subjects) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "there are no such resources in namespace %s\n", f.namespace)
		return nil
	}
	return f.control(cmd, c, subjects)
}

// subject is a resource that a command controls.
type subject struct {
	kind kinds.Kind
	name types.NamespacedName
}

func (f *controlFlags) subjects(ctx context.Context, c *clusterOf, args []string) (subjects []subject, err error) {
	targets, err := c.targets(args, "")
	if err != nil {
		return nil, err
	}
	for _, target := range targets {
		if target.Name == "" && !f.all {
			return nil, fmt.Errorf("%s is a kind: name resources, KIND/NAME, or give --all", target.GVK.Kind)
		}
		names, err := fleet.Names(ctx, c.watching, target, f.namespace)
		if errors.Is(err, fleet.ErrNotServed) && f.all && len(args) == 0 {
			continue // It has no resources.
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			subjects = append(subjects, subject{kind: target.Kind, name: name})
		}
	}
	return subjects, nil
}

// control gives the order to all subjects, and then waits for all that took it. A subject that
// cannot be changed does not keep the others from it.
func (f *controlFlags) control(cmd *cobra.Command, c *clusterOf, subjects []subject) error {
	order := fleet.Order{Verb: f.verb, Request: time.Now().UTC().Format(time.RFC3339Nano)}
	if f.verb == fleet.Resume && !f.wait {
		order.Request = ""
	}
	var mu sync.Mutex
	code := 0
	say := func(s subject, text string, failed int) {
		mu.Lock()
		defer mu.Unlock()
		code = max(code, failed)
		out := cmd.OutOrStdout()
		if failed > 0 {
			out = cmd.ErrOrStderr()
		}
		fmt.Fprintf(out, "%s %s: %s\n", s.kind.GVK.Kind, strings.TrimPrefix(s.name.String(), "/"), strings.ReplaceAll(sanitize.Text(text), "\n", "\n    "))
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	var waiting sync.WaitGroup
	for _, s := range subjects {
		switch version, err := order.Give(cmd.Context(), c.watching, s.kind, s.name); {
		case errors.Is(err, fleet.ErrUnchanged):
			say(s, err.Error(), 0)
		case err != nil:
			say(s, err.Error(), 2)
		case f.wait:
			waiting.Go(func() {
				outcome, err := order.Await(ctx, c.watching, s.kind, s.name, version)
				text, failed := f.describe(outcome, err)
				say(s, text, failed)
			})
		default:
			say(s, f.given, 0)
		}
	}
	waiting.Wait()
	if code > 0 {
		return cli.ExitWith(code, nil)
	}
	return nil
}

// describe returns the result of an order in words, and the exit code.
func (f *controlFlags) describe(outcome content.Outcome, err error) (text string, code int) {
	switch {
	case err != nil:
		return err.Error(), 1
	case f.done != "":
		return f.done, 0
	case outcome.Verdict != content.Succeeded:
		return fmt.Sprintf("failed (%s): %s", outcome.Reason, outcome.Message), 1
	}
	return "succeeded", 0
}
