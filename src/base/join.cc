#include "base/join.h"

#include <algorithm>

namespace rose {

template <typename Iterator>
fmt::format_context::iterator JoinedTexts<Iterator>::format(const View& view, fmt::format_context& context) {
  auto out = context.out();
  for (Iterator at = view.begin; at != view.end; ++at) {
    if (at != view.begin) out = std::copy(view.sep.begin(), view.sep.end(), out);
    out = std::copy(at->begin(), at->end(), out);
  }
  return out;
}

template struct JoinedTexts<std::vector<std::string>::iterator>;
template struct JoinedTexts<std::vector<std::string>::const_iterator>;
template struct JoinedTexts<std::set<std::string>::const_iterator>;

}  // namespace rose
