"""Languages and their compilers: how a source becomes something that can be launched, one package each.

`registry` finds a backend by its name, of this project or of another package; `backend` is the interface.
`machine_code` reads binaries, whichever compiler wrote them; `devices` knows the kinds of device.

Doors: backend, cpp.compiler, cpp.extension_builds, cpp.extension_headers, cpp.instruction_extensions,
cpp.loading, cpp.thread_races, cuda.launch_geometry, devices.cpu.detection, devices.cpu.processor,
devices.cuda.nvml, devices.cuda.toolkit, devices.device, devices.device_ceilings, devices.device_lock,
devices.device_registry, devices.disturbance, devices.driver_errors, language, listings, machine_code,
package_calls, registry, source_digests, source_names, triton.error_summary,
triton.interpretation.interpreted_syntax, triton.interpretation.interpreter,
triton.interpretation.libdevice, triton.offline_compilation, triton.triton_internals
"""
