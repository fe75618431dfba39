package cli

import (
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
)

// older is the value of a flag that is the older spelling of another one: what it
// is given goes there.
type older struct {
	newer *pflag.Flag
	// before is what the newer flag said when this one was read, "" where it said
	// nothing, and said is what this one made of it.
	before, said string
}

// Set implements pflag.Value.
func (o *older) Set(text string) error {
	if o.newer.Changed {
		o.before = o.newer.Value.String()
	}
	err := o.newer.Value.Set(text)
	o.said = o.newer.Value.String()
	return err
}

// String implements pflag.Value. An older spelling has no default of its own.
func (o *older) String() string { return "" }

// Type implements pflag.Value.
func (o *older) Type() string { return o.newer.Value.Type() }

// contradiction is an error where both spellings were given, and say different
// things.
func (o *older) contradiction(name string) error {
	for _, other := range []string{o.before, o.newer.Value.String()} {
		if o.newer.Changed && other != "" && other != o.said {
			return fmt.Errorf("--%s=%s contradicts --%s=%s: give the latter alone", name, o.said, o.newer.Name, other)
		}
	}
	return nil
}

// These flags were for choices that there are no more.
const (
	lockFlag  = "leader-elect-resource-lock"
	cacheFlag = "proxy-cache-max-bytes"
)

// olderSpellings defines what deployments of the base image may still give.
func (f *runFlags) olderSpellings(set *pflag.FlagSet) {
	for _, spelling := range []struct{ name, newer string }{
		{"metrics-addr", "metrics-bind-address"}, {"enable-leader-election", "leader-elect"}, {"max-workers", "max-concurrent-reconciles"},
	} {
		value := &older{newer: f.lookup(spelling.newer)}
		flag := set.VarPF(value, spelling.name, "", "read as --"+spelling.newer)
		flag.NoOptDefVal = value.newer.NoOptDefVal
	}
	set.String(lockFlag, "", "ignored: the lock of leader election is always a Lease")
	set.String(cacheFlag, "", "ignored: reads of runs always go to the API server")
	f.older = set
}

// lookup returns a flag of the groups there are.
func (f *runFlags) lookup(name string) *pflag.Flag {
	for _, g := range f.groups {
		if flag := g.flags.Lookup(name); flag != nil {
			return flag
		}
	}
	return nil
}

// checkOlder refuses older spellings that say something else than the newer ones.
func (f *runFlags) checkOlder() error {
	var errs []error
	f.older.VisitAll(func(flag *pflag.Flag) {
		if value, ok := flag.Value.(*older); ok && flag.Changed {
			errs = append(errs, value.contradiction(flag.Name))
		}
	})
	return errors.Join(errs...)
}

// warn tells what to write in place of older spellings.
func (f *runFlags) warn(log logr.Logger) {
	f.older.VisitAll(func(flag *pflag.Flag) {
		value, read := flag.Value.(*older)
		switch {
		case !flag.Changed:
		case read:
			log.Info("WARNING: the flag is deprecated: give the newer one", "flag", "--"+flag.Name, "newer", "--"+value.newer.Name)
		default:
			log.Info("WARNING: the flag is deprecated", "flag", "--"+flag.Name, "now", flag.Usage)
		}
	})
}
