// What the doors into LLVM's OpenMP runtime share.
#pragma once

union ompt_data_t;
struct ompt_frame_t;

namespace homing::doors {

/// The next definition of `name`, else the one that the code at `caller` would have got (a runtime that came
/// by dlopen with RTLD_LOCAL); that runtime then stays loaded. Null: none.
void* next_or_callers(const char* name, void* caller) noexcept;

/// ompt_get_task_info of the runtime that took us as its tool; null: none did.
using GetTaskInfo = int(int level, int* flags, ompt_data_t** task, ompt_frame_t** frame,
                        ompt_data_t** parallel, int* thread);
GetTaskInfo* get_task_info() noexcept;

} // namespace homing::doors
