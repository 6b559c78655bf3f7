#include "jvm/agent/places.h"

#include <cstdlib>

namespace rose::jvm {

Places::Places() : table_(new Slots{1023, static_cast<Place**>(std::calloc(1024, sizeof(Place*)))}) {}

std::size_t Places::hash(MethodId method, Location location) {
  auto word = reinterpret_cast<std::uintptr_t>(method) + static_cast<std::uintptr_t>(location) * 0x9e3779b97f4a7c15;
  word ^= word >> 29;
  word *= 0xbf58476d1ce4e5b9;
  return word ^ word >> 32;
}

const Place* Places::find(MethodId method, Location location) const {
  const Slots* table = __atomic_load_n(&table_, __ATOMIC_ACQUIRE);
  for (std::size_t i = hash(method, location);; ++i) {
    const Place* place = __atomic_load_n(&table->slots[i & table->mask], __ATOMIC_ACQUIRE);
    if (place == nullptr || (place->method == method && place->location == location)) return place;
  }
}

void Places::insert(Slots& into, Place* place) {
  for (std::size_t i = hash(place->method, place->location);; ++i) {
    Place*& slot = into.slots[i & into.mask];
    if (slot != nullptr && (slot->method != place->method || slot->location != place->location)) continue;
    __atomic_store_n(&slot, place, __ATOMIC_RELEASE);
    return;
  }
}

void Places::publish(Place* place) {
  if (const Place* old = find(place->method, place->location)) {
    for (Place*& one : all_) {
      if (one == old) one = place;
    }
    insert(*table_, place);
    return;
  }
  all_.push_back(place);
  if (all_.size() * 2 > table_->mask) {
    // The old table is not freed, because readers may still use it.
    const std::size_t size = (table_->mask + 1) * 2;
    auto* larger = new Slots{size - 1, static_cast<Place**>(std::calloc(size, sizeof(Place*)))};
    for (Place* one : all_) insert(*larger, one);
    __atomic_store_n(&table_, larger, __ATOMIC_RELEASE);
    return;
  }
  insert(*table_, place);
}

}  // namespace rose::jvm
