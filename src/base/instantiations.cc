#include "base/instantiations.h"

template class std::basic_string<char>;
template class std::vector<std::string>;
template class std::set<std::string>;
template class std::map<std::string, std::string>;
