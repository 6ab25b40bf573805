#include "registry.h"
#include <cstring>
static struct { const char *name; model f; } models[8];
static int count;
extern "C" void add_model(const char *name, model f) { models[count].name = name; models[count++].f = f; }
extern "C" model find_model(const char *name) {
  for (int i = 0; i < count; i++) if (!std::strcmp(models[i].name, name)) return models[i].f;
  return nullptr;
}
