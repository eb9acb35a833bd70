/**
 * Returns an object with the methods of `target` for a component that can die as with kill -9. Calls after its death have no effect. Calls
 * under way at its death may still have an effect, but their promises never settle.
 */
export function mortal<T extends object>(target: T, isAlive: () => boolean): T {
  const never = (): Promise<never> => new Promise(() => undefined);
  return new Proxy(target, {
    get(object, name, receiver) {
      const value: unknown = Reflect.get(object, name, receiver);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        if (!isAlive()) return never();
        const result: unknown = value.apply(object, args);
        if (!(result instanceof Promise)) return result;
        return new Promise((resolve, reject) => {
          result.then(
            (answer) => isAlive() && resolve(answer),
            (error: unknown) => isAlive() && reject(error),
          );
        });
      };
    },
  });
}
