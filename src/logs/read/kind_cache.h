// Remembers the kinds of masked texts, so that most lines need no search in the tree of templates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "logs/template.h"

namespace rose::logs {

// Maps hashes of masked texts to kinds. The size is fixed: a text that finds no free slot is looked up each time.
class KindCache {
 public:
  KindCache() : places_(std::size_t{1} << 16) {}
  [[nodiscard]] const TemplateId* find(std::uint64_t hash) const {
    for (std::size_t i = hash & mask(), n = 0; n < kProbes; i = (i + 1) & mask(), ++n) {
      if (places_[i].hash == hash) return &places_[i].id;
      if (places_[i].hash == 0) return nullptr;
    }
    return nullptr;
  }
  void add(std::uint64_t hash, TemplateId id) {
    for (std::size_t i = hash & mask(), n = 0; n < kProbes; i = (i + 1) & mask(), ++n) {
      if (places_[i].hash != 0) continue;
      places_[i] = {hash, id};
      return;
    }
  }

 private:
  static constexpr std::size_t kProbes = 16;
  struct Place {
    std::uint64_t hash = 0;
    TemplateId id = 0;
  };
  [[nodiscard]] std::size_t mask() const { return places_.size() - 1; }
  std::vector<Place> places_;
};

}  // namespace rose::logs
