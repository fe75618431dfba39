package children

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
)

// maxRecordedProofs bounds the proofs of one kind in the record, which is a ConfigMap of 1 MiB at
// most. Each takes 11 bytes.
const maxRecordedProofs = 20_000

// proof stands for a child and the CR whose run has written it. Nobody can choose the UID of an
// object, so that a short digest cannot be forged.
type proof [8]byte

func proofOf(child types.UID, cr ledger.CR) proof {
	sum := sha256.Sum256([]byte(string(child) + "\n" + cr.Kind.String() + "\n" + cr.NamespacedName.String()))
	return proof(sum[:len(proof{})])
}

// proofs are the children outside of their CR's namespace that runs are known to have written. A
// user who may write objects in one namespace can make them name any CR as their owner.
type proofs struct {
	children map[proof]*provenChild
	// outdated is true where the record has other proofs, lastSaved when they were last saved.
	outdated  bool
	lastSaved time.Time
	// toldTooMany is true once the log has told that the record does not take all proofs.
	toldTooMany bool
}

type provenChild struct {
	watch    schema.GroupKind
	resource schema.GroupResource
	// missed counts the sweeps that have not found the child.
	missed int
}

// needsProof reports whether the object alone does not prove that it is a child of the CR.
func needsProof(object metav1.Object, cr ledger.CR) bool {
	return object.GetNamespace() != cr.Namespace
}

func (p *proofs) has(child types.UID, cr ledger.CR) bool {
	return p.children[proofOf(child, cr)] != nil
}

// add notes that a run of the CR has written the child.
func (p *proofs) add(child types.UID, cr ledger.CR, resource schema.GroupResource) {
	p.insert(proofOf(child, cr), cr.Kind, resource)
}

func (p *proofs) insert(key proof, watch schema.GroupKind, resource schema.GroupResource) {
	if p.children == nil {
		p.children = map[proof]*provenChild{}
	}
	if known := p.children[key]; known != nil {
		known.missed = 0
		return
	}
	p.children[key] = &provenChild{watch: watch, resource: resource}
	p.outdated = true
}

// remove forgets a child that has been deleted.
func (p *proofs) remove(child metav1.Object) {
	for _, owner := range namedOwners(child) {
		if key := proofOf(child.GetUID(), owner.cr); p.children[key] != nil {
			delete(p.children, key)
			p.outdated = true
		}
	}
}

// text returns the proofs for the children of a watch of one resource, as the record has them.
func (p *proofs) text(watch schema.GroupKind, resource schema.GroupResource) string {
	var found []proof
	for key, child := range p.children {
		if child.watch == watch && child.resource == resource {
			found = append(found, key)
		}
	}
	slices.SortFunc(found, func(a, b proof) int { return cmp.Compare(string(a[:]), string(b[:])) })
	var all []byte
	for _, key := range found[:min(len(found), maxRecordedProofs)] {
		all = append(all, key[:]...)
	}
	return base64.RawStdEncoding.EncodeToString(all)
}

// read adds the proofs of the record.
func (p *proofs) read(text string, watch schema.GroupKind, resource schema.GroupResource) {
	all, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return // Somebody has edited the record. Runs prove their children anew.
	}
	for key := range slices.Chunk(all, len(proof{})) {
		if len(key) == len(proof{}) {
			p.insert(proof(key), watch, resource)
		}
	}
}

// proveChild notes that a run of the CR has written an object outside of the CR's namespace, which
// names the CR as its owner. It reports whether that was not known. The caller must hold the lock.
func (c *Children) proveChild(cr ledger.CR, child metav1.Object, link ownerLink, resource schema.GroupResource) bool {
	// A reference from elsewhere to an owner in a namespace is none.
	if !needsProof(child, cr) || link != byAnnotation && cr.Namespace != "" {
		return false
	}
	known := c.proofs.has(child.GetUID(), cr)
	c.proofs.add(child.GetUID(), cr, resource)
	return !known
}

// sweepProofs forgets the proofs of children that two sweeps have not found. The caller must hold
// the lock.
func (c *Children) sweepProofs() {
	live := map[proof]bool{}
	for _, f := range c.kinds {
		for _, informer := range f.informers {
			for _, object := range informer.Store().List() {
				if child, ok := object.(*strip.Object); ok {
					for _, owner := range namedOwners(child) {
						live[proofOf(child.UID, owner.cr)] = true
					}
				}
			}
		}
	}
	for key, child := range c.proofs.children {
		f := c.kinds[child.resource]
		switch {
		case live[key]:
			child.missed = 0
		case f != nil && !f.synced():
		case child.missed > 0:
			delete(c.proofs.children, key)
			c.proofs.outdated = true
		default:
			child.missed++
		}
	}
}

// scheduleProofs lets proofs be saved together: a run may write many children. The caller must
// hold the lock.
func (c *Children) scheduleProofs(now time.Time) {
	if !c.proofs.outdated || now.Sub(c.proofs.lastSaved) < c.timing.proofs {
		return
	}
	c.proofs.outdated, c.proofs.lastSaved, c.recordOutdated = false, now, true
	if len(c.proofs.children) > maxRecordedProofs && !c.proofs.toldTooMany {
		c.proofs.toldTooMany = true
		c.options.Logger.Info("too many children are in other namespaces than their CRs: after a restart, the manager does not see changes of some of them until a run writes them again", "children", len(c.proofs.children), "recorded", maxRecordedProofs)
	}
}
