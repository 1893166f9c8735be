// Large blocks that the C library allocates itself, like the buffers of its streams on file systems that want
// large pieces: they are not arrays of the program's.
#include "core.h"

enum { width = 777777 };

int main(void) {
    core_start();
    char* text = NULL;
    expect(asprintf(&text, "%*d", width, 5) == width, "asprintf");
    FILE* stream = tmpfile();
    fprintf(stream, "%s\n", text);
    rewind(stream);
    char* line = NULL;
    size_t room = 0;
    expect(getline(&line, &room, stream) == width + 1, "getline");
    core_run(CORE_ITERATIONS);
    expect(memcmp(line, text, width) == 0, "the line is the text");
    fclose(stream);
    free(line);
    free(text);
    return core_end();
}
