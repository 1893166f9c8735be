// What all programs of apps/ have in common: options, phases, times, results and the verdict.
//
// A program calls, in this order: app_begin, its app_*_option calls, app_options_end, app_describe,
// app_iterations_begin, for every iteration app_iteration_begin and app_iteration_end, then
// app_iterations_end, app_result for what it computed, and app_finish.
//
// On stdout every line that holds a time begins with "time"; all others are equal in any two runs with
// the same options and number of threads, and all but "threads:" are equal for any number of threads.
// Call everything outside of parallel regions. Fortran programs use the module in app.f90.
#ifndef HOMING_APPS_APP_H
#define HOMING_APPS_APP_H

enum app_verdict { APP_SUCCESSFUL, APP_FAILED, APP_NOT_APPLICABLE };

enum app_initialisation { APP_SERIAL, APP_PARALLEL, APP_PUBLISHED, APP_FIRST_USE };

// Starts phase 1 and keeps the arguments, which must live until app_options_end.
void app_begin(const char* name, int argc, char** argv);

// Each returns the value of the option `name` ("--n 5" or "--n=5"; the last one given counts), or `otherwise`
// where it is not given. A value that is malformed or out of range ends the program with one line and
// status 2. The help text is not copied.
long app_integer_option(const char* name, long otherwise, long least, long most, const char* help);
// A number of bytes: an integer, then nothing or one of K, M, G (powers of 1,024).
long app_bytes_option(const char* name, long otherwise, long least, long most, const char* help);
// `choices` are words separated by '|'; returns the index of the word given, from 0.
int app_choice_option(const char* name, int otherwise, const char* choices, const char* help);
// Any text; NULL where it is not given. `choices` is the word that stands for it in the help.
const char* app_text_option(const char* name, const char* choices, const char* help);
// The option --initialise, an app_initialisation; serial where it is not given.
int app_initialise_option(void);

// Ends with status 2 if an argument was not asked for, or prints the help and ends with status 0.
void app_options_end(void);

// Prints the head. `size` describes the problem, `bytes` is the memory of all its large arrays.
void app_describe(const char* size, long bytes, int initialisation, int threads);

void app_iterations_begin(long iterations); // prints the time since app_begin, starts phase 2
void app_iteration_begin(void);
// `value` is what --verbose prints of this iteration, unless `value_name` is NULL.
void app_iteration_end(const char* value_name, double value);
void app_iterations_end(void); // starts phase 0 and prints the times

void app_result(const char* name, double value);       // prints all 17 digits
void app_result_integer(const char* name, long value); // printed as unsigned

// SUCCESSFUL if |value - expected| <= tolerance * |expected|, else FAILED (also where value is not a number).
enum app_verdict app_compare(double value, double expected, double tolerance);

// Prints the verification line; returns, or ends the program with status 1 if it failed.
void app_finish(enum app_verdict verdict);

// Ends the program with status 1 and the line "NAME: message".
_Noreturn void app_error(const char* message);
// Ends the program with status 2: an option that the program cannot do without was not given.
_Noreturn void app_missing(const char* option, const char* wanted);

#endif
