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

// maxSavedOwnership is the largest number of ownership records of one kind in the ConfigMap, which
// may have 1 MiB. Each takes 11 bytes.
const maxSavedOwnership = 20_000

// ownershipRecord is a digest of the UID of a child and the name of the CR whose run wrote the child.
// Clients cannot choose the UID of an object, so that a short digest cannot be forged.
type ownershipRecord [8]byte

func ownershipOf(child types.UID, cr ledger.CR) ownershipRecord {
	sum := sha256.Sum256([]byte(string(child) + "\n" + cr.Kind.String() + "\n" + cr.NamespacedName.String()))
	return ownershipRecord(sum[:len(ownershipRecord{})])
}

// ownershipRecords are the children outside of their CR's namespace that runs have written. A
// user who may write objects in one namespace can make them name any CR as their owner.
type ownershipRecords struct {
	children map[ownershipRecord]*ownedChild
	// outdated is true if records are not saved yet, lastSaved the time of the last save.
	outdated  bool
	lastSaved time.Time
	// warnedTooMany is true once the log has said that the ConfigMap cannot have all records.
	warnedTooMany bool
}

type ownedChild struct {
	watch    schema.GroupKind
	resource schema.GroupResource
	// notFound counts the sweeps that have not found the child.
	notFound int
}

// needsOwnershipRecord reports whether the object alone does not prove that it is a child of the CR.
func needsOwnershipRecord(object metav1.Object, cr ledger.CR) bool {
	return object.GetNamespace() != cr.Namespace
}

func (p *ownershipRecords) has(child types.UID, cr ledger.CR) bool {
	return p.children[ownershipOf(child, cr)] != nil
}

// add notes that a run of the CR has written the child.
func (p *ownershipRecords) add(child types.UID, cr ledger.CR, resource schema.GroupResource) {
	p.insert(ownershipOf(child, cr), cr.Kind, resource)
}

func (p *ownershipRecords) insert(key ownershipRecord, watch schema.GroupKind, resource schema.GroupResource) {
	if p.children == nil {
		p.children = map[ownershipRecord]*ownedChild{}
	}
	if known := p.children[key]; known != nil {
		known.notFound = 0
		return
	}
	p.children[key] = &ownedChild{watch: watch, resource: resource}
	p.outdated = true
}

// remove forgets a child that has been deleted.
func (p *ownershipRecords) remove(child metav1.Object) {
	for _, owner := range namedOwners(child) {
		if key := ownershipOf(child.GetUID(), owner.cr); p.children[key] != nil {
			delete(p.children, key)
			p.outdated = true
		}
	}
}

// text returns the ownership records of the children of a watch of one resource, as the ConfigMap has them.
func (p *ownershipRecords) text(watch schema.GroupKind, resource schema.GroupResource) string {
	var found []ownershipRecord
	for key, child := range p.children {
		if child.watch == watch && child.resource == resource {
			found = append(found, key)
		}
	}
	slices.SortFunc(found, func(a, b ownershipRecord) int { return cmp.Compare(string(a[:]), string(b[:])) })
	var all []byte
	for _, key := range found[:min(len(found), maxSavedOwnership)] {
		all = append(all, key[:]...)
	}
	return base64.RawStdEncoding.EncodeToString(all)
}

// read adds the ownership records of the ConfigMap.
func (p *ownershipRecords) read(text string, watch schema.GroupKind, resource schema.GroupResource) {
	all, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return // Somebody has edited the ConfigMap. The next runs record their children again.
	}
	for key := range slices.Chunk(all, len(ownershipRecord{})) {
		if len(key) == len(ownershipRecord{}) {
			p.insert(ownershipRecord(key), watch, resource)
		}
	}
}

// recordOwnership notes that a run of the CR has written an object outside of the CR's namespace, which
// names the CR as its owner. It reports whether that was not known. The caller must hold the lock.
func (c *Children) recordOwnership(cr ledger.CR, child metav1.Object, link ownerLink, resource schema.GroupResource) bool {
	// A reference from elsewhere to an owner in a namespace is none.
	if !needsOwnershipRecord(child, cr) || link != byAnnotation && cr.Namespace != "" {
		return false
	}
	known := c.ownership.has(child.GetUID(), cr)
	c.ownership.add(child.GetUID(), cr, resource)
	return !known
}

// sweepOwnership drops the records of children that two sweeps have not found. The caller must hold
// the lock.
func (c *Children) sweepOwnership() {
	live := map[ownershipRecord]bool{}
	for _, f := range c.kinds {
		for _, informer := range f.informers {
			for _, object := range informer.Store().List() {
				if child, ok := object.(*strip.Object); ok {
					for _, owner := range namedOwners(child) {
						live[ownershipOf(child.UID, owner.cr)] = true
					}
				}
			}
		}
	}
	for key, child := range c.ownership.children {
		f := c.kinds[child.resource]
		switch {
		case live[key]:
			child.notFound = 0
		case f != nil && !f.synced():
		case child.notFound > 0:
			delete(c.ownership.children, key)
			c.ownership.outdated = true
		default:
			child.notFound++
		}
	}
}

// scheduleOwnership saves new records together: a run may write many children. The caller must
// hold the lock.
func (c *Children) scheduleOwnership(now time.Time) {
	if !c.ownership.outdated || now.Sub(c.ownership.lastSaved) < c.timing.ownership {
		return
	}
	c.ownership.outdated, c.ownership.lastSaved, c.recordOutdated = false, now, true
	if len(c.ownership.children) > maxSavedOwnership && !c.ownership.warnedTooMany {
		c.ownership.warnedTooMany = true
		c.options.Logger.Info("too many children are in other namespaces than their CRs: after a restart, the manager does not see changes of some of them until a run writes them again", "children", len(c.ownership.children), "recorded", maxSavedOwnership)
	}
}
